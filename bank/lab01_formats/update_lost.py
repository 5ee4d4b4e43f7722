# %% right: fractions
"""Exact fractions, and infinity told by hand."""

from fractions import Fraction


def nearest(x, e, m):
    bias = 2 ** (e - 1) - 1
    gap = Fraction(2) ** (1 - bias - m)
    while abs(x) >= gap * 2 ** (m + 1):
        gap *= 2
    return round(x / gap) * gap


def update_lost(param: float, update: float, exponent_bits: int, mantissa_bits: int) -> bool:
    e, m = exponent_bits, mantissa_bits
    limit = Fraction(2) ** (2 ** (e - 1))
    p, u = nearest(Fraction(param), e, m), nearest(Fraction(update), e, m)
    p_is_inf, u_is_inf = abs(p) >= limit, abs(u) >= limit
    if p_is_inf and u_is_inf:
        return (p > 0) == (u > 0)
    if p_is_inf or u_is_inf:
        return p_is_inf
    return nearest(p + u, e, m) == p


# %% right: numpy
"""numpy's frexp and rint on all three at once; returns a numpy bool."""
import numpy as np


def to_format(x, e, m):
    x = np.asarray(x, dtype=float)
    bias = 2 ** (e - 1) - 1
    exponent = np.where(x == 0, 1 - bias, np.maximum(np.frexp(x)[1] - 1, 1 - bias))
    with np.errstate(invalid="ignore"):
        y = np.ldexp(np.rint(np.ldexp(x, m - exponent)), exponent - m)
    y = np.where(np.isinf(x), x, y)
    return np.where(np.abs(y) > (2 - 2.0**-m) * 2.0**bias, np.copysign(np.inf, x), y)


def update_lost(param, update, e, m):
    p, u = to_format([param, update], e, m)
    return np.equal(to_format(p + u, e, m), p)


# %% right: one_or_zero
"""1 or 0, which are equal to True and False."""
from fractions import Fraction


def nearest(x, e, m):
    bias = 2 ** (e - 1) - 1
    gap = Fraction(2) ** (1 - bias - m)
    while abs(x) >= gap * 2 ** (m + 1):
        gap *= 2
    return round(x / gap) * gap


def update_lost(param: float, update: float, exponent_bits: int, mantissa_bits: int) -> int:
    e, m = exponent_bits, mantissa_bits
    limit = Fraction(2) ** (2 ** (e - 1))
    p, u = nearest(Fraction(param), e, m), nearest(Fraction(update), e, m)
    p_is_inf, u_is_inf = abs(p) >= limit, abs(u) >= limit
    if p_is_inf and u_is_inf:
        return int((p > 0) == (u > 0))
    if p_is_inf or u_is_inf:
        return int(p_is_inf)
    return 1 if nearest(p + u, e, m) == p else 0


# %% right: rounded
"""Rounds three times with frexp and ldexp."""
import math


def update_lost(param, update, e, m):
    bias = 2 ** (e - 1) - 1

    def rounded(x):
        if x == 0 or math.isinf(x):
            return x
        exponent = max(math.frexp(x)[1] - 1, 1 - bias) - m
        y = math.ldexp(round(math.ldexp(x, -exponent)), exponent)
        return y if abs(y) <= (2 - 2.0**-m) * 2.0**bias else math.copysign(math.inf, x)

    param = rounded(param)
    return rounded(param + rounded(update)) == param


# %% wrong: compared_with_unrounded
"""Compares the stored sum with the number that was given."""
import math


def update_lost(param, update, e, m):
    bias = 2 ** (e - 1) - 1

    def rounded(x):
        if x == 0 or math.isinf(x):
            return x
        exponent = max(math.frexp(x)[1] - 1, 1 - bias) - m
        y = math.ldexp(round(math.ldexp(x, -exponent)), exponent)
        return y if abs(y) <= (2 - 2.0**-m) * 2.0**bias else math.copysign(math.inf, x)

    return rounded(rounded(param) + rounded(update)) == param


# %% wrong: half_gap_only
"""Compares with half the gap above the parameter."""
import math


def update_lost(param, update, e, m):
    bias = 2 ** (e - 1) - 1

    def rounded(x):
        if x == 0 or math.isinf(x):
            return x
        exponent = max(math.frexp(x)[1] - 1, 1 - bias) - m
        y = math.ldexp(round(math.ldexp(x, -exponent)), exponent)
        return y if abs(y) <= (2 - 2.0**-m) * 2.0**bias else math.copysign(math.inf, x)

    param, update = rounded(param), rounded(update)
    if math.isinf(param) or math.isinf(update):
        return param + update == param
    gap = 2.0 ** (max(math.frexp(param)[1] - 1 if param else -9999, 1 - bias) - m)
    return abs(update) <= gap / 2


# %% wrong: in_binary64
"""Adds Python floats."""


def update_lost(param, update, e, m):
    return param + update == param


# %% wrong: inputs_not_rounded
"""Adds first and rounds afterwards."""
import math


def update_lost(param, update, e, m):
    bias = 2 ** (e - 1) - 1

    def rounded(x):
        if x == 0 or math.isinf(x):
            return x
        exponent = max(math.frexp(x)[1] - 1, 1 - bias) - m
        y = math.ldexp(round(math.ldexp(x, -exponent)), exponent)
        return y if abs(y) <= (2 - 2.0**-m) * 2.0**bias else math.copysign(math.inf, x)

    return rounded(param + update) == rounded(param)


# %% wrong: less_than_epsilon
"""Compares with epsilon times the parameter."""


def update_lost(param, update, e, m):
    return abs(update) < abs(param) * 2.0**-m


# %% wrong: negative_always_lost
"""Compares with half the gap, sign and all."""
import math


def update_lost(param, update, e, m):
    bias = 2 ** (e - 1) - 1

    def rounded(x):
        if x == 0 or math.isinf(x):
            return x
        exponent = max(math.frexp(x)[1] - 1, 1 - bias) - m
        y = math.ldexp(round(math.ldexp(x, -exponent)), exponent)
        return y if abs(y) <= (2 - 2.0**-m) * 2.0**bias else math.copysign(math.inf, x)

    param, update = rounded(param), rounded(update)
    if math.isinf(param) or math.isinf(update):
        return param + update == param
    gap = 2.0 ** (max(math.frexp(param)[1] - 1 if param else -9999, 1 - bias) - m)
    return update <= gap / 2


# %% wrong: no_overflow
"""Rounds to the gap, and forgets that a format ends."""
import math


def update_lost(param, update, e, m):
    lowest = 2 - 2 ** (e - 1)

    def rounded(x):
        if x == 0:
            return x
        exponent = max(math.frexp(x)[1] - 1, lowest) - m
        return math.ldexp(round(math.ldexp(x, -exponent)), exponent)

    param = rounded(param)
    return rounded(param + rounded(update)) == param


# %% wrong: truncates
"""Cuts instead of rounding."""
import math


def update_lost(param, update, e, m):
    bias = 2 ** (e - 1) - 1

    def rounded(x):
        if x == 0 or math.isinf(x):
            return x
        exponent = max(math.frexp(x)[1] - 1, 1 - bias) - m
        y = math.ldexp(round(math.ldexp(x, -exponent)), exponent)
        return y if abs(y) <= (2 - 2.0**-m) * 2.0**bias else math.copysign(math.inf, x)

    def cut(x):
        if x == 0 or math.isinf(x):
            return x
        exponent = max(math.frexp(x)[1] - 1, 1 - bias) - m
        return math.ldexp(int(math.ldexp(x, -exponent)), exponent)

    return cut(cut(param) + cut(update)) == cut(param)


# %% wrong: whole_gap
"""Compares with the whole gap."""
import math


def update_lost(param, update, e, m):
    bias = 2 ** (e - 1) - 1

    def rounded(x):
        if x == 0 or math.isinf(x):
            return x
        exponent = max(math.frexp(x)[1] - 1, 1 - bias) - m
        y = math.ldexp(round(math.ldexp(x, -exponent)), exponent)
        return y if abs(y) <= (2 - 2.0**-m) * 2.0**bias else math.copysign(math.inf, x)

    param, update = rounded(param), rounded(update)
    if math.isinf(param) or math.isinf(update):
        return param + update == param
    gap = 2.0 ** (max(math.frexp(param)[1] - 1 if param else -9999, 1 - bias) - m)
    return abs(update) <= gap


# %% wrong: no_subnormals
"""Goes on halving the gap below the smallest normal number."""
import math


def nearest(x, e, m):
    if x == 0 or math.isinf(x):
        return x
    gap = math.frexp(x)[1] - 1 - m
    y = math.ldexp(round(math.ldexp(x, -gap)), gap)
    return y if abs(y) < 2.0 ** (2 ** (e - 1)) else math.copysign(math.inf, x)


def update_lost(param, update, exponent_bits, mantissa_bits):
    form = exponent_bits, mantissa_bits
    stored = nearest(param, *form)
    return nearest(stored + nearest(update, *form), *form) == stored


# %% wrong: subnormals_flushed
"""Takes everything below the smallest normal number for zero."""
from peakmem.labs.lab01 import rounded


def nearest(x, e, m):
    y = rounded(x, e, m)
    return y if abs(y) >= 2.0 ** (2 - 2 ** (e - 1)) else 0.0


def update_lost(param, update, exponent_bits, mantissa_bits):
    form = exponent_bits, mantissa_bits
    stored = nearest(param, *form)
    return nearest(stored + nearest(update, *form), *form) == stored


# %% wrong: three_formats
"""Knows the three formats that torch has, and takes any other for float32."""
import torch


def update_lost(param, update, exponent_bits, mantissa_bits):
    known = {(5, 10): torch.float16, (8, 7): torch.bfloat16}
    dtype = known.get((exponent_bits, mantissa_bits), torch.float32)
    stored = torch.tensor(param, dtype=dtype)
    return bool(stored + torch.tensor(update, dtype=dtype) == stored)


# %% wrong: sign_of_param_lost
"""Takes the parameter without its sign."""
from peakmem.labs.lab01 import rounded


def update_lost(param, update, exponent_bits, mantissa_bits):
    form = exponent_bits, mantissa_bits
    stored = rounded(abs(param), *form)
    return rounded(stored + rounded(update, *form), *form) == stored


# %% wrong: absolute_update
"""Adds the update's size."""

from peakmem.labs.lab01 import rounded


def update_lost(param, update, exponent_bits, mantissa_bits):
    stored = rounded(param, exponent_bits, mantissa_bits)
    moved = stored + rounded(abs(update), exponent_bits, mantissa_bits)
    return rounded(moved, exponent_bits, mantissa_bits) == stored


# %% wrong: is_close
"""numpy's isclose."""

import numpy as np
from peakmem.labs.lab01 import rounded


def update_lost(param, update, exponent_bits, mantissa_bits):
    stored = rounded(param, exponent_bits, mantissa_bits)
    moved = stored + rounded(update, exponent_bits, mantissa_bits)
    return bool(np.isclose(rounded(moved, exponent_bits, mantissa_bits), stored))


# %% wrong: infinity_moves
"""Asks whether the difference is 0, which it isn't between infinities."""

from peakmem.labs.lab01 import rounded


def update_lost(param, update, exponent_bits, mantissa_bits):
    stored = rounded(param, exponent_bits, mantissa_bits)
    moved = stored + rounded(update, exponent_bits, mantissa_bits)
    return rounded(moved, exponent_bits, mantissa_bits) - stored == 0


# %% wrong: zero_always_moves
"""Takes every update of a parameter that is 0 for a move."""
from peakmem.labs.lab01 import rounded


def update_lost(param, update, exponent_bits, mantissa_bits):
    p, u = (rounded(x, exponent_bits, mantissa_bits) for x in (param, update))
    return p != 0 and rounded(p + u, exponent_bits, mantissa_bits) == p


# %% wrong: infinite_update_moves
"""Takes an infinite update for one that moves everything, infinity too."""
import math

from peakmem.labs.lab01 import rounded


def update_lost(param, update, exponent_bits, mantissa_bits):
    p, u = (rounded(x, exponent_bits, mantissa_bits) for x in (param, update))
    return math.isfinite(u) and rounded(p + u, exponent_bits, mantissa_bits) == p


# %% wrong: five_exponent_bits
"""Rounds to fp16's range in every format."""
from peakmem.labs.lab01 import rounded


def update_lost(param, update, exponent_bits, mantissa_bits):
    p, u = (rounded(x, 5, mantissa_bits) for x in (param, update))
    return rounded(p + u, 5, mantissa_bits) == p


# %% wrong: adds_in_float32
"""Adds in float32, which has too few bits for some formats, and too small a range."""

import numpy as np
from peakmem.labs.lab01 import rounded


def update_lost(param, update, exponent_bits, mantissa_bits):
    stored = np.float32(rounded(param, exponent_bits, mantissa_bits))
    moved = stored + np.float32(rounded(update, exponent_bits, mantissa_bits))
    return bool(rounded(float(moved), exponent_bits, mantissa_bits) == stored)


# %% wrong: eight_exponent_bits
"""Rounds to bf16's range in every format with more exponent bits."""

from peakmem.labs.lab01 import rounded


def update_lost(param, update, exponent_bits, mantissa_bits):
    e = min(exponent_bits, 8)
    stored = rounded(param, e, mantissa_bits)
    moved = stored + rounded(update, e, mantissa_bits)
    return rounded(moved, e, mantissa_bits) == stored


# %% wrong: ten_mantissa_bits
"""Rounds to fp16's precision in every format but fp32 that has more mantissa bits."""

from peakmem.labs.lab01 import rounded


def update_lost(param, update, exponent_bits, mantissa_bits):
    m = mantissa_bits if mantissa_bits == 23 else min(mantissa_bits, 10)
    stored = rounded(param, exponent_bits, m)
    moved = stored + rounded(update, exponent_bits, m)
    return rounded(moved, exponent_bits, m) == stored


# %% wrong: kept_without_the_format
"""Keeps results by param and update, whatever the format."""
import math

known = {}


def update_lost(param, update, exponent_bits, mantissa_bits):
    def nearest(x):
        if x == 0 or math.isinf(x):
            return x
        bias = 2 ** (exponent_bits - 1) - 1
        exponent = max(math.frexp(x)[1] - 1, 1 - bias) - mantissa_bits
        y = math.ldexp(round(math.ldexp(x, -exponent)), exponent)
        return y if abs(y) < 2.0 ** (bias + 1) else math.copysign(math.inf, x)

    if (param, update) not in known:
        stored = nearest(param)
        known[param, update] = nearest(stored + nearest(update)) == stored
    return known[param, update]
