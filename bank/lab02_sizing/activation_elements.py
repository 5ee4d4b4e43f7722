# %% right: functions
"""A function for each op, called with the dimensions by name."""
OPS = {
    "conv2d": lambda bs, nc, wo, ho: bs * nc * wo * ho,
    "linear": lambda bs, m, n, p: bs * m * p,
    "transformer": lambda bs, seq_len, h: bs * seq_len * h,
}


def activation_elements(op: str, **dims: int) -> int:
    if op not in OPS:
        raise ValueError(f"unknown op {op}")
    return OPS[op](**dims)


# %% right: match
"""Match, one product per op."""
def activation_elements(op, **dims):
    match op:
        case "conv2d":
            return dims["bs"] * dims["nc"] * dims["wo"] * dims["ho"]
        case "linear":
            return dims["bs"] * dims["m"] * dims["p"]
        case "transformer":
            return dims["bs"] * dims["seq_len"] * dims["h"]
    raise ValueError(op)


# %% right: numpy_product
"""numpy's product of everything but what is summed over."""
import numpy as np


def activation_elements(op, **dims):
    if op not in ("conv2d", "linear", "transformer"):
        raise ValueError(op)
    return np.prod([size for name, size in dims.items() if name != "n"], dtype=np.int64)


# %% wrong: conv_square
"""Takes the picture for a square."""
def activation_elements(op, **d):
    if op == "conv2d":
        return d["bs"] * d["nc"] * d["wo"] * d["wo"]
    if op == "linear":
        return d["bs"] * d["m"] * d["p"]
    if op == "transformer":
        return d["bs"] * d["seq_len"] * d["h"]
    raise ValueError(op)


# %% wrong: conv_without_channels
"""One channel only."""
def activation_elements(op, **d):
    if op == "conv2d":
        return d["bs"] * d["wo"] * d["ho"]
    if op == "linear":
        return d["bs"] * d["m"] * d["p"]
    if op == "transformer":
        return d["bs"] * d["seq_len"] * d["h"]
    raise ValueError(op)


# %% wrong: linear_all_four
"""Multiplies whatever there is."""
def activation_elements(op, **d):
    if op == "conv2d":
        return d["bs"] * d["nc"] * d["wo"] * d["ho"]
    if op == "linear":
        return d["bs"] * d["m"] * d["n"] * d["p"]
    if op == "transformer":
        return d["bs"] * d["seq_len"] * d["h"]
    raise ValueError(op)


# %% wrong: linear_input
"""Counts the linear layer's input."""
def activation_elements(op, **d):
    if op == "conv2d":
        return d["bs"] * d["nc"] * d["wo"] * d["ho"]
    if op == "linear":
        return d["bs"] * d["m"] * d["n"]
    if op == "transformer":
        return d["bs"] * d["seq_len"] * d["h"]
    raise ValueError(op)


# %% wrong: linear_weight
"""Counts the linear layer's weight."""
def activation_elements(op, **d):
    if op == "conv2d":
        return d["bs"] * d["nc"] * d["wo"] * d["ho"]
    if op == "linear":
        return d["n"] * d["p"]
    if op == "transformer":
        return d["bs"] * d["seq_len"] * d["h"]
    raise ValueError(op)


# %% wrong: unknown_op_none
"""Says nothing of an unknown op."""
def activation_elements(op, **d):
    if op == "conv2d":
        return d["bs"] * d["nc"] * d["wo"] * d["ho"]
    if op == "linear":
        return d["bs"] * d["m"] * d["p"]
    if op == "transformer":
        return d["bs"] * d["seq_len"] * d["h"]
    return None


# %% wrong: unknown_op_taken
"""Multiplies the dimensions of anything."""
def activation_elements(op, **d):
    if op == "conv2d":
        return d["bs"] * d["nc"] * d["wo"] * d["ho"]
    if op == "linear":
        return d["bs"] * d["m"] * d["p"]
    if op == "transformer":
        return d["bs"] * d["seq_len"] * d["h"]
    product = 1
    for size in d.values():
        product *= size
    return product


# %% wrong: without_batch
"""Counts one example."""
def activation_elements(op, **d):
    if op == "conv2d":
        return d["nc"] * d["wo"] * d["ho"]
    if op == "linear":
        return d["m"] * d["p"]
    if op == "transformer":
        return d["seq_len"] * d["h"]
    raise ValueError(op)


# %% wrong: any_conv
"""Takes whatever begins with conv."""


def activation_elements(op, **dims):
    if op.startswith("conv"):
        return dims["bs"] * dims["nc"] * dims["wo"] * dims["ho"]
    if op == "linear":
        return dims["bs"] * dims["m"] * dims["p"]
    if op == "transformer":
        return dims["bs"] * dims["seq_len"] * dims["h"]
    raise ValueError(op)


# %% wrong: goes_by_dims
"""Tells the operations by their dimensions."""
import math


def activation_elements(op, **dims):
    if op in ("conv2d", "transformer"):
        return math.prod(dims.values())
    if "p" in dims:
        return dims["bs"] * dims["m"] * dims["p"]
    raise ValueError(op)


# %% wrong: float32_product
"""Multiplies in float32."""
import torch


def activation_elements(op, **dims):
    if op not in ("conv2d", "linear", "transformer"):
        raise ValueError(op)
    return int(torch.tensor([float(v) for name, v in dims.items() if name != "n"]).prod())


# %% wrong: substring
"""op in a string."""


def activation_elements(op, **d):
    if op not in "conv2d linear transformer":
        raise ValueError(op)
    import math
    return math.prod(v for k, v in d.items() if k != "n")


# %% wrong: by_position
"""Takes the dimensions in the order of the text, whatever their names."""


def activation_elements(op, **dims):
    sizes = list(dims.values())
    if op == "linear":
        bs, m, _, p = sizes
        return bs * m * p
    if op == "transformer":
        bs, seq_len, h = sizes
        return bs * seq_len * h
    if op == "conv2d":
        bs, nc, wo, ho = sizes
        return bs * nc * wo * ho
    raise ValueError(f"unknown operation {op!r}")


# %% right: axes_by_name
"""The output's axes as strings."""

from functools import reduce
from operator import mul

AXES = {"conv2d": "bs nc wo ho", "linear": "bs m p", "transformer": "bs seq_len h"}


def activation_elements(op, **dims):
    try:
        axes = AXES[op].split()
    except KeyError as error:
        raise ValueError(op) from error
    return reduce(mul, map(dims.__getitem__, axes))


# %% wrong: ends_of_names
"""Goes by the ends of names, so "bilinear" passes."""
import math


def activation_elements(op, **dims):
    names = {
        "conv2d": ("bs", "nc", "wo", "ho"),
        "linear": ("bs", "m", "p"),
        "transformer": ("bs", "seq_len", "h"),
    }
    for known, own in names.items():
        if op.endswith(known):
            return math.prod(dims[name] for name in own)
    raise ValueError(op)


# %% wrong: beginnings_of_names
"""Goes by the beginnings of names, so "conv2d_transpose" passes."""


def activation_elements(op, **dims):
    if op.startswith("conv2d"):
        return dims["bs"] * dims["nc"] * dims["wo"] * dims["ho"]
    if op.startswith("linear"):
        return dims["bs"] * dims["m"] * dims["p"]
    if op.startswith("transformer"):
        return dims["bs"] * dims["seq_len"] * dims["h"]
    raise ValueError(op)


# %% wrong: strips_the_name
"""Takes spaces around a name for nothing."""
import math


def activation_elements(op, **dims):
    names = {
        "conv2d": ("bs", "nc", "wo", "ho"),
        "linear": ("bs", "m", "p"),
        "transformer": ("bs", "seq_len", "h"),
    }
    if op.strip() not in names:
        raise ValueError(op)
    return math.prod(dims[name] for name in names[op.strip()])


# %% wrong: kept_by_its_batch
"""Keeps results by op and batch, whatever the other dimensions."""
known = {}


def activation_elements(op, bs, **dims):
    if (op, bs) not in known:
        match op:
            case "conv2d":
                known[op, bs] = bs * dims["nc"] * dims["wo"] * dims["ho"]
            case "linear":
                known[op, bs] = bs * dims["m"] * dims["p"]
            case "transformer":
                known[op, bs] = bs * dims["seq_len"] * dims["h"]
            case _:
                raise ValueError(op)
    return known[op, bs]


# %% wrong: kept_by_its_dimensions
"""Keeps results by dimensions, so an unknown op gets that of a known one."""
known = {}


def activation_elements(op, **dims):
    key = tuple(sorted(dims.items()))
    if key not in known:
        if op not in ("conv2d", "linear", "transformer"):
            raise ValueError(op)
        size = 1
        for name, count in dims.items():
            size *= 1 if name == "n" else count
        known[key] = size
    return known[key]
