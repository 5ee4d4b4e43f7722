# %% right: dict
"""A table from operator to answer."""


def autocast_dtype(op, low):
    table = dict.fromkeys("matmul linear conv2d bmm scaled_dot_product_attention".split(), low)
    full = "softmax log_softmax layer_norm sum exp log norm cross_entropy mse_loss"
    table.update(dict.fromkeys(full.split(), "float32"))
    try:
        return table[op]
    except KeyError:
        raise ValueError(op) from None


# %% right: match
"""A match statement."""


def autocast_dtype(op: str, low: str) -> str:
    match op:
        case "matmul" | "linear" | "conv2d" | "bmm" | "scaled_dot_product_attention":
            return low
        case "softmax" | "log_softmax" | "layer_norm" | "sum" | "exp" | "log" | "norm":
            return "float32"
        case "cross_entropy" | "mse_loss":
            return "float32"
        case _:
            raise ValueError("unknown operator: " + op)


# %% right: sets
"""Two sets and an error."""

LOW = {"matmul", "linear", "conv2d", "bmm", "scaled_dot_product_attention"}
FULL = {"softmax", "log_softmax", "layer_norm", "sum", "exp", "log", "norm"}
FULL |= {"cross_entropy", "mse_loss"}


def autocast_dtype(op, low):
    if op in LOW:
        return low
    if op in FULL:
        return "float32"
    raise ValueError(f"unknown operator {op!r}")


# %% wrong: always_float16
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


# %% wrong: attention_float32
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


# %% wrong: everything_low
"""All that is known runs in 16 bits."""

LOW = {"matmul", "linear", "conv2d", "bmm", "scaled_dot_product_attention"}
FULL = {"softmax", "log_softmax", "layer_norm", "sum", "exp", "log", "norm"}
FULL |= {"cross_entropy", "mse_loss"}


def autocast_dtype(op, low):
    if op in LOW:
        return low
    if op in FULL:
        return low
    raise ValueError(f"unknown operator {op!r}")


# %% wrong: layer_norm_low
"""Takes layer_norm for a cheap operator."""

LOW = {"layer_norm", "matmul", "linear", "conv2d", "bmm", "scaled_dot_product_attention"}
FULL = {"softmax", "log_softmax", "layer_norm", "sum", "exp", "log", "norm"}
FULL |= {"cross_entropy", "mse_loss"}


def autocast_dtype(op, low):
    if op in LOW:
        return low
    if op in FULL:
        return "float32"
    raise ValueError(f"unknown operator {op!r}")


# %% wrong: losses_low
"""Puts the losses in 16 bits."""

LOW = {
    "cross_entropy",
    "mse_loss",
    "matmul",
    "linear",
    "conv2d",
    "bmm",
    "scaled_dot_product_attention",
}
FULL = {"softmax", "log_softmax", "layer_norm", "sum", "exp", "log", "norm"}
FULL |= {"cross_entropy", "mse_loss"}


def autocast_dtype(op, low):
    if op in LOW:
        return low
    if op in FULL:
        return "float32"
    raise ValueError(f"unknown operator {op!r}")


# %% wrong: softmax_low
"""Takes softmax for a cheap operator."""

LOW = {
    "softmax",
    "log_softmax",
    "matmul",
    "linear",
    "conv2d",
    "bmm",
    "scaled_dot_product_attention",
}
FULL = {"softmax", "log_softmax", "layer_norm", "sum", "exp", "log", "norm"}
FULL |= {"cross_entropy", "mse_loss"}


def autocast_dtype(op, low):
    if op in LOW:
        return low
    if op in FULL:
        return "float32"
    raise ValueError(f"unknown operator {op!r}")


# %% wrong: sums_low
"""Puts sums in 16 bits."""

LOW = {"sum", "norm", "matmul", "linear", "conv2d", "bmm", "scaled_dot_product_attention"}
FULL = {"softmax", "log_softmax", "layer_norm", "sum", "exp", "log", "norm"}
FULL |= {"cross_entropy", "mse_loss"}


def autocast_dtype(op, low):
    if op in LOW:
        return low
    if op in FULL:
        return "float32"
    raise ValueError(f"unknown operator {op!r}")


# %% wrong: torch_dtype
"""Returns torch dtypes."""

import torch


LOW = {"matmul", "linear", "conv2d", "bmm", "scaled_dot_product_attention"}
FULL = {"softmax", "log_softmax", "layer_norm", "sum", "exp", "log", "norm"}
FULL |= {"cross_entropy", "mse_loss"}


def autocast_dtype(op, low):
    if op in LOW:
        return getattr(torch, low)
    if op in FULL:
        return torch.float32
    raise ValueError(f"unknown operator {op!r}")


# %% wrong: unknown_is_float32
"""What is not known runs in float32."""

LOW = {"matmul", "linear", "conv2d", "bmm", "scaled_dot_product_attention"}
FULL = {"softmax", "log_softmax", "layer_norm", "sum", "exp", "log", "norm"}
FULL |= {"cross_entropy", "mse_loss"}


def autocast_dtype(op, low):
    if op in LOW:
        return low
    return "float32"
