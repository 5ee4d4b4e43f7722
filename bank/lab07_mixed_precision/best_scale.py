# %% right: logarithm
"""The largest value and a logarithm."""

import math


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads if g.numel()), default=0.0)
    if largest == 0:
        return 2.0**24
    exponent = min(24, max(-24, math.floor(math.log2(65520 / largest))))
    while exponent > -24 and largest * 2.0**exponent >= 65520:
        exponent -= 1
    return 2.0**exponent


# %% right: numpy
"""Numpy, doubling upwards."""

import numpy as np


def best_scale(grads):
    values = np.concatenate([np.zeros(1, np.float32)] + [g.numpy().ravel() for g in grads])
    scale = np.float64(2.0**-24)
    with np.errstate(over="ignore"):
        while scale < 2**24 and np.isfinite((values * (2 * scale)).astype(np.float16)).all():
            scale *= 2
    return scale


# %% right: search_down
"""Tries the scales from the largest down."""

import torch


def best_scale(grads):
    for exponent in range(24, -25, -1):
        scale = 2.0**exponent
        if all((grad * scale).half().isfinite().all() for grad in grads):
            return scale
    return 2.0**-24


# %% wrong: at_most_65504
"""Compares with the largest number."""


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads if g.numel()), default=0.0)
    scale = 2.0**24
    while scale > 2.0**-24 and largest * scale > 65504:
        scale /= 2
    return scale


# %% wrong: exponent
"""Returns the exponent."""

import math


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads if g.numel()), default=0.0)
    scale = 2.0**24
    while scale > 2.0**-24 and largest * scale >= 65520:
        scale /= 2
    return math.log2(scale)


# %% wrong: first_tensor_only
"""Only the first tensor."""


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads[:1] if g.numel()), default=0.0)
    scale = 2.0**24
    while scale > 2.0**-24 and largest * scale >= 65520:
        scale /= 2
    return scale


# %% wrong: last_tensor_only
"""The loop forgets all but the last tensor."""


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads[-1:] if g.numel()), default=0.0)
    scale = 2.0**24
    while scale > 2.0**-24 and largest * scale >= 65520:
        scale /= 2
    return scale


# %% wrong: never_below_1
"""Scales are at least 1."""


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads if g.numel()), default=0.0)
    scale = 2.0**24
    while scale > 1 and largest * scale >= 65520:
        scale /= 2
    return scale


# %% wrong: no_power_of_two
"""Divides the maximum by the largest value."""


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads if g.numel()), default=0.0)
    return min(2.0**24, 65504 / largest) if largest else 2.0**24


# %% wrong: one_too_large
"""Stops at the first that overflows."""


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads if g.numel()), default=0.0)
    scale = 2.0**24
    while scale > 2.0**-24 and largest * scale / 2 >= 65520:
        scale /= 2
    return scale


# %% wrong: one_too_small
"""Leaves a factor of two to spare."""


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads if g.numel()), default=0.0)
    scale = 2.0**24
    while scale > 2.0**-24 and largest * 2 * scale >= 65520:
        scale /= 2
    return scale


# %% wrong: signs_forgotten
"""max without abs."""


def best_scale(grads):
    largest = max((g.max().item() for g in grads if g.numel()), default=0.0)
    scale = 2.0**24
    while scale > 2.0**-24 and largest * scale >= 65520:
        scale /= 2
    return scale


# %% wrong: by_the_norm
"""The norm of all decides."""

import torch


def best_scale(grads):
    largest = sum(float(g.square().sum()) for g in grads) ** 0.5
    scale = 2.0**24
    while scale > 2.0**-24 and largest * scale >= 65520:
        scale /= 2
    return scale


# %% wrong: no_upper_limit
"""Scales may be above 2^24."""

import math


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads), default=0.0)
    return 2.0 ** math.floor(math.log2(65519 / largest)) if largest else 2.0**24


# %% wrong: in_place
"""Takes absolute values in place."""

import torch


def best_scale(grads):
    largest = max((grad.abs_().max().item() for grad in grads if grad.numel()), default=0.0)
    scale = 2.0**24
    while scale > 2.0**-24 and largest * scale >= 65520:
        scale /= 2
    return scale


# %% wrong: at_most_65519
"""Takes 65519 for the largest number that rounds down."""

import math


def best_scale(grads):
    largest = max((grad.abs().max().item() for grad in grads if grad.numel()), default=0.0)
    if largest == 0:
        return 2.0**24
    return 2.0 ** min(24, max(-24, math.floor(math.log2(65519 / largest))))


# %% wrong: means_of_rows
"""Goes by the mean of each row of a matrix."""


def best_scale(grads):
    sizes = [grad.abs().mean(-1) if grad.ndim > 1 else grad.abs() for grad in grads]
    largest = max((size.max().item() for size in sizes if size.numel()), default=0.0)
    scale = 2.0**24
    while scale > 2.0**-24 and largest * scale >= 65520:
        scale /= 2
    return scale


# %% right: casts_each_scale
"""Casts all values with each scale, from the largest down."""


def best_scale(grads):
    for exponent in range(24, -24, -1):
        scaled = [(grad.double() * 2.0**exponent).half() for grad in grads]
        if all(bool(value.isfinite().all()) for value in scaled):
            return 2.0**exponent
    return 2.0**-24
