# %% right: add_7fff
"""The trick of adding 0x7FFF and the last bit, NaN apart."""

import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint16)


# %% right: bytes
"""Takes the upper halves from the bytes, and works on a flat copy."""
import numpy as np


def to_bf16(x):
    words = np.frombuffer(x.tobytes(), dtype="<u2").reshape(-1, 2).astype(np.int64)
    low, high = words[:, 0], words[:, 1].copy()
    not_nan = ~np.isnan(x.ravel())
    high[not_nan] += ((low > 0x8000) | ((low == 0x8000) & (high & 1 > 0)))[not_nan]
    high[~not_nan] |= 64
    return high.reshape(x.shape)


# %% right: float64
"""Rounds in float64, in units of the last place, and packs the fields."""
import numpy as np


def to_bf16(x):
    with np.errstate(invalid="ignore"):
        wide = np.abs(x.astype(np.float64))
    finite = np.where(np.isfinite(wide), wide, 0.0)
    exponent = np.where(finite < 2.0**-126, -126, np.frexp(finite)[1] - 1)
    magnitude = (exponent + 126 << 7) + np.rint(np.ldexp(finite, 7 - exponent)).astype(np.int64)
    magnitude = np.where(np.isinf(wide), 0x7F80, magnitude)
    magnitude = np.where(np.isnan(wide), 0x7FFF, magnitude)
    return (np.signbit(x).astype(np.int64) << 15 | magnitude).astype(np.uint16)


# %% right: halves
"""Compares the lower half with the middle; NaN keeps its payload, with a quiet bit set."""
import numpy as np


def to_bf16(x: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(x).view(np.uint32).reshape(x.shape)
    upper = (bits >> 16).astype(np.uint16)
    lower = bits & 0xFFFF
    up = (lower > 0x8000) | ((lower == 0x8000) & (upper % 2 == 1))
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return np.where(nan, upper | 0x0040, upper + up.astype(np.uint16)).astype(np.uint16)


# %% wrong: changes_its_input
"""Adds into the view, and so into x itself."""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    nan = np.isnan(x)
    bits += 0x7FFF + (bits >> 16 & 1)
    return np.where(nan, 0x7FC0, bits >> 16).astype(np.uint16)


# %% wrong: comprehension
"""Loops in Python, which is not allowed."""
import numpy as np


def to_bf16(x):
    def one(bits):
        if bits & 0x7FFFFFFF > 0x7F800000:
            return 0x7FC0
        return bits + 0x7FFF + (bits >> 16 & 1) >> 16

    patterns = [one(int(bits)) for bits in x.view(np.uint32).ravel()]
    return np.array(patterns, np.uint16).reshape(x.shape)


# %% wrong: flattens
"""Returns one long row whatever the shape. [earns 2]"""
import numpy as np


def to_bf16(x):
    bits = x.ravel().view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x.ravel()), 0x7FC0, rounded).astype(np.uint16)


# %% wrong: inf_is_nan
"""Takes every exponent field of 255 for NaN. [earns 2]"""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(bits >> 23 & 0xFF == 255, 0x7FC0, rounded).astype(np.uint16)


# %% wrong: lower_half
"""Takes the first 16 of the 32 bits in memory, which is the lower half here."""
import numpy as np


def to_bf16(x):
    return np.ascontiguousarray(x).view(np.uint16).reshape(-1)[::2].reshape(x.shape)


# %% wrong: nan_cut_to_inf
"""Cuts NaN and infinity off without rounding: a low payload is lost. [earns 2]"""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    rounded = bits + 0x7FFF + (bits >> 16 & 1)
    special = bits & 0x7F800000 == 0x7F800000
    return (np.where(special, bits, rounded) >> 16).astype(np.uint16)


# %% wrong: nan_overflows
"""The trick of adding 0x7FFF, with no thought of NaN. [earns 2]"""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


# %% wrong: saturates
"""Keeps finite numbers finite by a clip. [earns 1]"""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32).astype(np.int64)
    sign, magnitude = bits >> 31 << 15, bits & 0x7FFFFFFF
    rounded = (magnitude + 0x7FFF + (magnitude >> 16 & 1)) >> 16
    rounded = np.where(np.isfinite(x), np.minimum(rounded, 0x7F7F), magnitude >> 16)
    return np.where(np.isnan(x), 0x7FC0, sign | rounded).astype(np.uint16)


# %% wrong: ties_away
"""Adds 0x8000, so every tie goes up. [earns 2]"""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    return np.where(np.isnan(x), 0x7FC0, (bits + 0x8000) >> 16).astype(np.uint16)


# %% wrong: ties_toward_zero
"""Adds 0x7FFF without the last bit, so every tie goes down. [earns 2]"""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    return np.where(np.isnan(x), 0x7FC0, (bits + 0x7FFF) >> 16).astype(np.uint16)


# %% wrong: truncates
"""Keeps the upper half as it is."""
import numpy as np


def to_bf16(x):
    return (x.view(np.uint32) >> 16).astype(np.uint16)


# %% right: nested_lists
"""Returns plain lists."""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).tolist()


# %% wrong: subnormals_flushed
"""Takes subnormal numbers for zero. [earns 1]"""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    bits = np.where(bits & 0x7F800000 == 0, bits & 0x80000000, bits)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint16)


# %% wrong: clears_nan
"""Sets NaN to 0 in its argument. [earns 2]"""
import numpy as np


def to_bf16(x):
    nan = np.isnan(x)
    x[nan] = 0
    bits = x.view(np.uint32)
    return np.where(nan, 0x7FC0, (bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


# %% wrong: starmap
"""Calls a function for each element, without a word of a loop."""
from itertools import starmap

import numpy as np


def one(bits):
    if bits & 0x7FFFFFFF > 0x7F800000:
        return 0x7FC0
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def to_bf16(x):
    rows = x.view(np.uint32).reshape(-1, 1).tolist()
    return np.array([*starmap(one, rows)], np.uint16).reshape(x.shape)


# %% wrong: bytes_of_memory
"""Takes the upper halves from the bytes in memory order. [earns 2]"""

import numpy as np


def to_bf16(x):
    halves = np.frombuffer(x.tobytes(order="A"), np.uint16)
    lower, upper = halves[::2].astype(np.uint32), halves[1::2].astype(np.uint32)
    up = (lower > 0x8000) | ((lower == 0x8000) & (upper & 1 == 1))
    return np.where(np.isnan(x), 0x7FC0, (upper + up).reshape(x.shape))


# %% wrong: any_empty_array
"""Returns a one-dimensional array for every empty one. [earns 2]"""
import numpy as np


def to_bf16(x):
    if x.size == 0:
        return np.array([], np.uint16)
    bits = x.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint16)


# %% wrong: signed
"""Patterns as signed integers, which are below 0 for negative numbers."""
import numpy as np


def to_bf16(x):
    bits = x.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.int16)

# %% wrong: scalar_assignment
"""Item assignment fails on shape (). [earns 2]"""


import numpy as np
def to_bf16(x):
    b = x.view(np.uint32)
    p = ((b + (0x7FFF + ((b >> 16) & 1)).astype(np.uint32)) >> 16).astype(np.uint16)
    p[np.isnan(x)] = 0x7FC0
    return p

# %% right: masked_steps
"""Masked array steps, with np.putmask and a copy."""


import numpy as np
def to_bf16(x):
    bits = x.copy().view(np.uint32)
    bits = np.atleast_1d(bits)
    low = np.bitwise_and(bits, 0xFFFF)
    high = np.right_shift(bits, 16)
    up = np.logical_or(low > 32768, np.logical_and(low == 32768, high % 2 != 0))
    out = np.add(high, up, dtype=np.uint32, casting="unsafe")
    np.putmask(out, np.isnan(np.atleast_1d(x)), 0x7FC1)
    return out.reshape(x.shape)
