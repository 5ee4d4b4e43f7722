"""Attention has a softmax, so float32."""

LOW = {"matmul", "linear", "conv2d", "bmm"}
FULL = {
    "scaled_dot_product_attention",
    "softmax",
    "log_softmax",
    "layer_norm",
    "sum",
    "exp",
    "log",
    "norm",
}
FULL |= {"cross_entropy", "mse_loss"}


def autocast_dtype(op, low):
    if op in LOW:
        return low
    if op in FULL:
        return "float32"
    raise ValueError(f"unknown operator {op!r}")
