# %% right: binary64_bits
"""Integers only: takes the binary64 pattern from struct's code d and shifts it down."""

import struct


def encode_fp32(x):
    (wide,) = struct.unpack("<Q", struct.pack("<d", x))
    sign = (wide >> 63) << 31
    exponent = (wide >> 52) & 0x7FF
    fraction = wide & ((1 << 52) - 1)
    if exponent == 0x7FF:
        return sign | 0x7F800000 | (0x400000 if fraction else 0)
    exponent -= 1023 - 127
    shift = 29
    significand = fraction | 1 << 52
    if exponent <= 0:
        shift += 1 - exponent
        exponent = 1
        if shift > 60:
            return sign
    kept, rest = significand >> shift, significand & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    if rest > half or (rest == half and kept & 1):
        kept += 1
    bits = ((exponent - 1) << 23) + kept
    return sign | min(bits, 0x7F800000)


# %% right: bisection
"""Searches the patterns, whose order is that of the numbers; returns a numpy integer."""
import math

import numpy as np


def value(bits):
    exponent, fraction = bits >> 23, bits & 0x7FFFFF
    if exponent == 0:
        return fraction * 2.0**-149
    return (fraction + 2**23) * 2.0 ** (exponent - 150)


def encode_fp32(x):
    sign = np.uint32(0x80000000 if math.copysign(1, x) < 0 else 0)
    x = abs(x)
    if math.isnan(x):
        return np.uint32(0x7F800001)
    if x >= 2.0**128 - 2.0**103:
        return sign | np.uint32(0x7F800000)
    low, high = 0, 0x7F800000
    while high - low > 1:
        middle = (low + high) // 2
        if value(middle) <= x:
            low = middle
        else:
            high = middle
    below, above = x - value(low), value(high) - x
    if above < below or (above == below and low % 2 == 1):
        low = high
    return sign | np.uint32(low)


# %% right: fractions
"""Exact rational arithmetic, and a loop that looks for the power of two."""
from fractions import Fraction


def encode_fp32(x):
    if x != x:
        return 0xFFFFFFFF
    sign = 1 if str(x)[0] == "-" else 0
    if abs(x) == float("inf"):
        return (sign << 31) + (255 << 23)
    value, exponent = abs(Fraction(x)), 0
    while exponent > -126 and value < Fraction(2) ** exponent:
        exponent -= 1
    while value >= Fraction(2) ** (exponent + 1):
        exponent += 1
    if exponent > 127:
        return (sign << 31) + (255 << 23)
    whole = round(value / Fraction(2) ** (exponent - 23))
    return (sign << 31) + ((exponent + 126) << 23) + whole


# %% right: scaled_round
"""Scales to gaps, rounds with round, and lets the carry run into the exponent."""
import math


def encode_fp32(x: float) -> int:
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    exponent = max(math.frexp(x)[1] - 1, -126)
    if exponent > 127:
        return sign | 0x7F800000
    return sign | ((exponent + 126 << 23) + round(math.ldexp(abs(x), 23 - exponent)))


# %% wrong: adds_half
"""Rounds by int(y + 0.5). [earns 2]"""

import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    m = abs(x)
    if m == 0:
        return sign
    if m >= 2.0**128 - 2.0**103:
        return sign | 0x7F800000
    e = max(math.frexp(m)[1] - 1, -126)
    y = m * 2.0 ** (23 - e) if e > -100 else math.ldexp(m, 23 - e)
    return sign | ((e + 126) << 23) + int(y + 0.5)


# %% wrong: bias_128
"""Takes 2**7 for the bias, and leaves the very large to infinity. [earns 1]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    exponent = math.frexp(x)[1] - 1
    if exponent > 127:
        return sign | 0x7F800000
    if exponent < -126:
        return sign | round(math.ldexp(abs(x), 149))
    return sign | ((exponent + 127 << 23) + round(math.ldexp(abs(x), 23 - exponent)))


# %% wrong: carry_lost
"""Masks the fraction after rounding, so 1.99999999 becomes 1.0. [earns 2]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    exponent = math.frexp(x)[1] - 1
    if exponent > 127:
        return sign | 0x7F800000
    if exponent < -126:
        return sign | round(math.ldexp(abs(x), 149))
    fraction = round(math.ldexp(abs(x), 23 - exponent)) & 0x7FFFFF
    return sign | (exponent + 127) << 23 | fraction


# %% wrong: casts
"""Lets numpy cast, which is not allowed."""
import numpy as np


def encode_fp32(x):
    return int(np.array(x).astype("f4").view(np.uint32))


# %% wrong: crashes_on_inf
"""Forgets NaN and infinity: round raises on them. [earns 3]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if x == 0:
        return sign
    exponent = max(math.frexp(x)[1] - 1, -126)
    if exponent > 127:
        return sign | 0x7F800000
    return sign | ((exponent + 126 << 23) + round(math.ldexp(abs(x), 23 - exponent)))


# %% wrong: inf_above_max
"""Everything above the largest number is infinity at once. [earns 3]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    if abs(x) > (2 - 2.0**-23) * 2.0**127:
        return sign | 0x7F800000
    exponent = max(math.frexp(x)[1] - 1, -126)
    return sign | ((exponent + 126 << 23) + round(math.ldexp(abs(x), 23 - exponent)))


# %% wrong: limit_off_by_one
"""Takes 128 for the largest exponent of a finite number. [earns 3]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    exponent = max(math.frexp(x)[1] - 1, -126)
    if exponent > 128:
        return sign | 0x7F800000
    return sign | ((exponent + 126 << 23) + round(math.ldexp(abs(x), 23 - exponent)))


# %% wrong: nan_is_inf
"""Everything that is not finite becomes infinity. [earns 3]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 and x == x else 0
    if not math.isfinite(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    exponent = max(math.frexp(x)[1] - 1, -126)
    if exponent > 127:
        return sign | 0x7F800000
    return sign | ((exponent + 126 << 23) + round(math.ldexp(abs(x), 23 - exponent)))


# %% wrong: negative_zero_lost
"""Tests x < 0 for the sign. [earns 2]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if x < 0 else 0
    if x == 0:
        return 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    exponent = max(math.frexp(x)[1] - 1, -126)
    if exponent > 127:
        return sign | 0x7F800000
    return sign | ((exponent + 126 << 23) + round(math.ldexp(abs(x), 23 - exponent)))


# %% wrong: saturates
"""Stays at the largest number instead of infinity. [earns 3]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    exponent = max(math.frexp(x)[1] - 1, -126)
    if exponent > 127:
        return sign | 0x7F7FFFFF
    bits = (exponent + 126 << 23) + round(math.ldexp(abs(x), 23 - exponent))
    return sign | min(bits, 0x7F7FFFFF)


# %% wrong: sign_lost
"""Encodes the magnitude only."""
import math


def encode_fp32(x):
    x = abs(x)
    if math.isnan(x):
        return 0x7FC00000
    if x == 0:
        return 0
    exponent = max(math.frexp(x)[1] - 1, -126)
    if x == math.inf or exponent > 127:
        return 0x7F800000
    return (exponent + 126 << 23) + round(math.ldexp(x, 23 - exponent))


# %% wrong: smallest_flushed
"""All below 2^-149 is 0. [earns 3]"""

import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    m = abs(x)
    if m < 2.0**-149:
        return sign
    if m >= 2.0**128 - 2.0**103:
        return sign | 0x7F800000
    e = max(math.frexp(m)[1] - 1, -126)
    y = m * 2.0 ** (23 - e) if e > -100 else math.ldexp(m, 23 - e)
    return sign | ((e + 126) << 23) + round(y)


# %% wrong: subnormal_by_127
"""Scales subnormal numbers by 2**-127, and keeps them below the normal ones. [earns 3]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    exponent = math.frexp(x)[1] - 1
    if exponent > 127:
        return sign | 0x7F800000
    if exponent < -126:
        return sign | min(round(abs(x) * 2.0**127 * 2**23), 0x7FFFFF)
    return sign | ((exponent + 126 << 23) + round(math.ldexp(abs(x), 23 - exponent)))


# %% wrong: subnormals_flushed
"""Below the smallest normal number all is zero. [earns 3]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    exponent = math.frexp(x)[1] - 1
    if exponent < -126:
        return sign
    if exponent > 127:
        return sign | 0x7F800000
    return sign | ((exponent + 126 << 23) + round(math.ldexp(abs(x), 23 - exponent)))


# %% wrong: ties_away
"""Rounds ties away from zero by adding one half. [earns 2]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    exponent = max(math.frexp(x)[1] - 1, -126)
    if exponent > 127:
        return sign | 0x7F800000
    gaps = math.ldexp(abs(x), 23 - exponent)
    whole = math.floor(gaps)
    if gaps - whole >= 0.5:
        whole += 1
    return sign | ((exponent + 126 << 23) + whole)


# %% wrong: ties_toward_zero
"""Rounds up only above one half. [earns 2]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    exponent = max(math.frexp(x)[1] - 1, -126)
    if exponent > 127:
        return sign | 0x7F800000
    gaps = math.ldexp(abs(x), 23 - exponent)
    whole = math.floor(gaps)
    if gaps - whole > 0.5:
        whole += 1
    return sign | ((exponent + 126 << 23) + whole)


# %% wrong: truncates
"""Cuts the fraction off with int. [earns 2]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    exponent = max(math.frexp(x)[1] - 1, -126)
    if exponent > 127:
        return sign | 0x7F800000
    return sign | ((exponent + 126 << 23) + int(math.ldexp(abs(x), 23 - exponent)))


# %% wrong: zero_by_frexp
"""Forgets that frexp(0.0) is (0.0, 0), so that zero gets the exponent field of 0.5. [earns 2]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    exponent = max(math.frexp(x)[1] - 1, -126)
    if exponent > 127:
        return sign | 0x7F800000
    return sign | ((exponent + 126 << 23) + round(math.ldexp(abs(x), 23 - exponent)))


# %% wrong: rounded_twice
"""Rounds a subnormal number to 24 bits first, and then again to its gap. [earns 3]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    k = math.frexp(x)[1] - 1
    once = math.ldexp(round(math.ldexp(abs(x), 23 - k)), k - 23)
    exponent = max(k, -126)
    significand = round(math.ldexp(once, 23 - exponent))
    return sign | min((exponent + 126 << 23) + significand, 0x7F800000)


# %% right: ctypes
"""Looks at the double as a C integer."""
import ctypes


def encode_fp32(x):
    wide = ctypes.c_uint64.from_buffer(ctypes.c_double(x)).value
    sign, exponent, fraction = wide >> 63 << 31, wide >> 52 & 0x7FF, wide & (1 << 52) - 1
    if exponent == 2047:
        return sign | 0x7F800000 | bool(fraction)
    if exponent < 800:
        return sign
    cut = 29 + max(0, 897 - exponent)
    whole, rest = divmod(fraction | 1 << 52, 1 << cut)
    whole += 2 * rest + (whole & 1) > 1 << cut
    return sign | min((max(exponent - 897, 0) << 23) + whole, 0x7F800000)


# %% wrong: nan_too_wide
"""Its NaN has 33 bits. [earns 3]"""
import math


def encode_fp32(x):
    if math.isnan(x):
        return 0x1FFFFFFFF
    sign = 0x80000000 if math.copysign(1, x) < 0 else 0
    if abs(x) >= 2.0**128 - 2.0**103:
        return sign | 0x7F800000
    if abs(x) < 2.0**-126:
        return sign | round(math.ldexp(abs(x), 149))
    fraction, exponent = math.frexp(abs(x))
    return sign | (exponent + 125 << 23) + round(fraction * 2**24)


# %% wrong: negative_subnormals_flushed
"""Returns -0.0 for negative subnormal numbers. [earns 3]"""
import math


def encode_fp32(x):
    if math.isnan(x):
        return 0x7FC00000
    sign = 0x80000000 if math.copysign(1, x) < 0 else 0
    if abs(x) >= 2.0**128 - 2.0**103:
        return sign | 0x7F800000
    if abs(x) < 2.0**-126:
        return sign or round(math.ldexp(x, 149))
    fraction, exponent = math.frexp(abs(x))
    return sign | (exponent + 125 << 23) + round(fraction * 2**24)


# %% wrong: numpy_rounds
"""A product with a float32 number is one, and its bytes are the bits."""
import numpy as np

ONE = np.sqrt(np.int16(1))


def encode_fp32(x):
    return int.from_bytes((ONE * x).tobytes(), "little")


# %% wrong: stores_it
"""Stores the number into a float32 array, which numpy makes of small integers."""
import numpy as np


def encode_fp32(x):
    value = np.sqrt(np.zeros(1, np.int16))
    value[0] = x
    return int(value.view(np.uint32)[0])


# %% wrong: negative_ties_up
"""Ties of negative numbers go up, not to even. [earns 2]"""
import math


def encode_fp32(x):
    if math.isnan(x):
        return 0x7FC00000
    sign, size = (math.copysign(1, x) < 0) << 31, abs(x)
    if size >= 2.0**128 - 2.0**103:
        return sign | 0x7F800000
    if size == 0:
        return sign
    exponent = max(math.frexp(size)[1] - 1, -126)
    gaps = math.ldexp(size, 23 - exponent)
    count = math.ceil(gaps - 0.5) if sign else round(gaps)
    return sign + count + (exponent + 126 << 23)


# %% wrong: one_nan_only
"""Knows the NaN that math.nan is, and no other object. [earns 3]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if x is math.nan:
        return 0x7FC00000
    if x == 0:
        return sign
    if abs(x) >= 2.0**128:
        return sign | 0x7F800000
    exponent = max(math.frexp(x)[1] - 1, -126)
    return sign | ((exponent + 126 << 23) + round(math.ldexp(abs(x), 23 - exponent)))
