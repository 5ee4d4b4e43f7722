"""Forgets that low may be bfloat16."""

LOW = {"matmul", "linear", "conv2d", "bmm", "scaled_dot_product_attention"}
FULL = {"softmax", "log_softmax", "layer_norm", "sum", "exp", "log", "norm"}
FULL |= {"cross_entropy", "mse_loss"}


def autocast_dtype(op, low):
    if op in LOW:
        return "float16"
    if op in FULL:
        return "float32"
    raise ValueError(f"unknown operator {op!r}")
