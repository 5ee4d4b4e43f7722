"""What is not known runs in float32."""

LOW = {"matmul", "linear", "conv2d", "bmm", "scaled_dot_product_attention"}
FULL = {"softmax", "log_softmax", "layer_norm", "sum", "exp", "log", "norm"}
FULL |= {"cross_entropy", "mse_loss"}


def autocast_dtype(op, low):
    if op in LOW:
        return low
    return "float32"
