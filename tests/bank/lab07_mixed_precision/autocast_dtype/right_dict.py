"""A table from operator to answer."""


def autocast_dtype(op, low):
    table = dict.fromkeys("matmul linear conv2d bmm scaled_dot_product_attention".split(), low)
    full = "softmax log_softmax layer_norm sum exp log norm cross_entropy mse_loss"
    table.update(dict.fromkeys(full.split(), "float32"))
    try:
        return table[op]
    except KeyError:
        raise ValueError(op) from None
