# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: nbgrader,tags,slideshow,-all
#     notebook_metadata_filter: kernelspec,-jupytext.text_representation.jupytext_version
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 1: how numbers are stored
#
# A training fits if its **peak memory is below the available memory**. All that fills this memory
# is numbers: weights, gradients, the optimizer's state, activations. So every byte count in this
# course is *how many numbers* times *bytes per number*. This lab is about the second factor: what
# a number of 4, 2 or 1 bytes can hold, and what it loses.
#
# | exercise | minutes | points |
# |---|---|---|
# | 1.3 From bits to a number: fp32 | 15 | 4 |
# | 1.4 From a number to bits: fp32 | 20 | 4 |
# | 1.6 Half the memory: bf16 | 15 | 3 |

# %% nbgrader={"grade": false, "grade_id": "lab01-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import numpy as np

import peakmem

peakmem.lab("lab01_formats")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-decode_fp32-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.3 From bits to a number: fp32 (4 points, 15 minutes)
#
# A fixed point wastes bits: it has the same gap everywhere. A *floating* point moves with the
# number. `fp32` (IEEE 754 binary32, `torch.float32`) divides its 32 bits into three fields:
#
# | bit 31 | bits 30 to 23 | bits 22 to 0 |
# |---|---|---|
# | sign, 1 bit | exponent *E*, 8 bits | fraction *F*, 23 bits |
#
# | *E* | value |
# |---|---|
# | 1 ... 254 (normal) | (-1)^sign * (1 + *F* / 2^23) * 2^(*E* - 127) |
# | 0 (subnormal, or zero where *F* = 0) | (-1)^sign * (*F* / 2^23) * 2^-126 |
# | 255 | *F* = 0: infinity with that sign; else NaN, "not a number" |
#
# The leading 1 of a normal number is not stored, so 23 bits hold 24. An exponent field of 0 gives
# it up; only so can the format reach 0. Note that it is 2^-126 there, as for *E* = 1, and not
# 2^-127: the numbers go on below the smallest normal one with the same gap, without a hole.
#
# Write `decode_fp32(bits)`:
# - `bits` is an integer from 0 to 2^32 - 1. Return its value as a Python float.
# - A Python float has 64 bits, so it holds every fp32 value exactly. Nothing is rounded here.
# - -0.0 is not 0.0: keep the sign.
# - Take the bits apart by arithmetic. Not allowed, by any route: a cast to or a view as float16,
#   float32, bfloat16 or float8, the codes `e` and `f` of `struct`, `float.hex` and
#   `float.fromhex`, `torch` and `ml_dtypes`. Integers, float64 and the code `d` are fine.
#
# *Points:* normal 1, subnormal 1, zeros 1, infinity and NaN 1.
#
# *Example:* `0x3E880000` is `0 01111101 00010000000000000000000`: sign 0, *E* = 125, *F* / 2^23 =
# 0.0625. Its value is 1.0625 * 2^-2 = 0.265625.
#
# **Predict first.** How many of the 2^32 patterns are NaN?

# %%
predicted_nan_patterns = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab01-decode_fp32-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decode_fp32(bits: int) -> float:
    """Return the value of the fp32 number that these 32 bits hold."""
    ### BEGIN SOLUTION
    sign = -1.0 if bits >> 31 else 1.0
    exponent = bits >> 23 & 0xFF
    fraction = (bits & 0x7FFFFF) / 2**23
    if exponent == 255:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * fraction * 2.0**-126
    return sign * (1 + fraction) * 2.0 ** (exponent - 127)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-decode_fp32-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
def fields(bits):
    """Return the three fields of an fp32 pattern, written in binary."""
    text = f"{bits:032b}"
    return f"{text[0]} {text[1:9]} {text[9:]}"


for bits, value, hint in [
    (0x3E880000, 0.265625, "1.0625 * 2**-2: is the leading 1 there, and the bias 127?"),
    (0x3E200000, 0.15625, "1.25 * 2**-3: the fraction's highest bit is worth 1/2"),
    (0xC0490000, -3.140625, "bit 31 is the sign"),
    (0x00800000, 2.0**-126, "the smallest normal number has exponent field 1"),
    (0x00000001, 2.0**-149, "exponent field 0: no leading 1, and 2**-126"),
    (0xFF800000, -math.inf, "exponent field 255 with fraction 0"),
]:
    got = decode_fp32(bits)
    assert got == value, f"{fields(bits)} is {value}, but you return {got}; {hint}"
assert math.copysign(1, decode_fp32(0x80000000)) == -1, "0x80000000 is -0.0: its sign is lost"
assert math.isnan(decode_fp32(0x7FC00000)), "exponent field 255, fraction not 0: that is NaN"
# Of one sign: 2**23 patterns have exponent field 255, and all but one (infinity) are NaN.
print(f"NaN patterns: {2 * (2**23 - 1):,} of {2**32:,}; you predicted {predicted_nan_patterns}")

# %% nbgrader={"grade": true, "grade_id": "lab01-decode_fp32", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.3, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.stock import score

score("lab01-decode_fp32", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-encode_fp32-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.4 From a number to bits: fp32 (4 points, 20 minutes)
#
# Between two neighbours in fp32 lie many real numbers, and each has to go to one of the two. The
# rule, here and in nearly all hardware, is **nearest, ties to even**: take the nearer one; exactly
# in the middle, take the one whose last bit is 0. Always rounding up in the middle would push
# every long sum upwards; the even rule goes up and down equally often.
#
# Write `encode_fp32(x)`:
# - `x` is any Python float (64 bits). Return the pattern of the nearest fp32 number as an integer.
# - A value that rounds past the largest number becomes infinity. The largest is
#   (2 - 2^-23) * 2^127; the limit is half a gap above it, at 2^128 - 2^103, where the tie goes up.
# - Below 2^-126 the gap stays at 2^-149. Up to half of that, 2^-150, rounds to zero.
# - -0.0, the infinities and NaN have patterns too. Any NaN pattern is right for NaN.
# - What is not allowed is the same as in 1.3.
#
# *Points:* exact values 1, inexact ones and ties 1, overflow and underflow 1, zeros, infinity and
# NaN 1.
#
# *Example:* near 1.0 the gap is 2^-23. `encode_fp32(1 + 2**-24)` is a tie between `0x3F800000`
# (1.0) and `0x3F800001`. The first is even, so it is the answer.
#
# *Hints:* `math.frexp(x)` gives `(m, e)` with `x == m * 2**e` and `0.5 <= abs(m) < 1`. Scaling by
# a power of two is exact (`math.ldexp`). Python's `round(y)` rounds ties to even. And the patterns
# of the positive numbers are in the order of the numbers: one more in the pattern is the next
# number up, even where the exponent changes.
#
# **Predict first.** 0.1 has no exact pattern. How far off is fp32's 0.1: is the relative error
# nearer to 1e-4, 1e-8 or 1e-12?

# %%
predicted_error_of_a_tenth = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab01-encode_fp32-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def encode_fp32(x: float) -> int:
    """Return the 32 bits of the fp32 number nearest to x, ties to even."""
    ### BEGIN SOLUTION
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    exponent = max(math.frexp(x)[1] - 1, -126)  # of the gap that x lies in
    if exponent > 127:
        return sign | 0x7F800000
    significand = round(math.ldexp(abs(x), 23 - exponent))  # in gaps, up to 2**24
    # The leading 1 (2**23) adds 1 to the exponent field, and so does a carry to 2**24.
    return sign | ((exponent + 126 << 23) + significand)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-encode_fp32-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
for x, bits, hint in [
    (0.265625, 0x3E880000, "an exact value"),
    (-3.140625, 0xC0490000, "bit 31 is the sign"),
    (1 + 2**-24, 0x3F800000, "a tie: the even pattern is the lower one"),
    (1 + 3 * 2**-24, 0x3F800002, "a tie: the even pattern is the upper one"),
    (1 + 2**-24 + 2**-40, 0x3F800001, "more than half a gap above 1.0"),
    (2 - 2**-25, 0x40000000, "the significand rounds up to 2.0, and the exponent grows"),
    (2.0**-149, 0x00000001, "the smallest subnormal number"),
    (2.0**-150, 0x00000000, "a tie between 0 and the smallest one"),
    (1e39, 0x7F800000, "past the largest number"),
    (0.0, 0x00000000, "zero has no leading 1 to look for"),
    (-0.0, 0x80000000, "-0.0 has its own pattern, though -0.0 == 0.0"),
]:
    got = encode_fp32(x)
    assert got == bits, f"encode_fp32({x!r}) is 0x{bits:08X}, but you return {got!r}; {hint}"
nan = encode_fp32(math.nan)
assert nan & 0x7FFFFFFF > 0x7F800000, "NaN: exponent field 255 and any fraction but 0"
error = abs(decode_fp32(encode_fp32(0.1)) - 0.1) / 0.1
print(f"fp32's 0.1 is off by {error:.1e} of its value; you predicted {predicted_error_of_a_tenth}")

# %% nbgrader={"grade": true, "grade_id": "lab01-encode_fp32", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.4, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.stock import score

score("lab01-encode_fp32", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-to_bf16-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.6 Half the memory: bf16 (3 points, 15 minutes)
#
# `bf16` is the upper half of fp32: the same sign, the same 8 exponent bits, and 7 bits of fraction
# instead of 23. So it has fp32's range at half the memory, and conversion is cheap. Cutting the
# lower 16 bits off would round toward zero; a conversion rounds to the nearest, ties to even.
#
# Write `to_bf16(x)`:
# - `x` is a numpy array of float32, of any shape, maybe empty. Return a `uint16` array of the same
#   shape with the bf16 patterns. Leave `x` unchanged.
# - No Python loop, comprehension, `map` or `np.vectorize`: a model has billions of weights.
# - Past the largest bf16 number comes infinity. NaN stays NaN (any NaN pattern is right), and
#   infinity stays infinity.
# - What is not allowed is the same as in 1.3. `x` is float32 already, so you need not convert it;
#   `x.view(np.uint32)` shows its bits.
#
# *Points:* nearest 1, ties to even 1, NaN and infinity 1.
#
# *Example:* 1 + 2^-8 = `0x3F80_8000` lies in the middle between `0x3F80` and `0x3F81`. The first is
# even, so it is the answer.
#
# **Predict first.** A million weights in fp32 take 4 MB. What is the largest relative
# error that bf16 brings to any of them, in percent?

# %%
predicted_error_percent = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab01-to_bf16-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def to_bf16(x: np.ndarray) -> np.ndarray:
    """Return the bf16 patterns (uint16) of a float32 array, nearest even, in the same shape."""
    ### BEGIN SOLUTION
    bits = x.view(np.uint32)
    last = bits >> 16 & 1  # the last bit that stays: ties go up only where it is 1
    rounded = bits + 0x7FFF + last
    return np.where(np.isnan(x), 0x7FC0, rounded >> 16).astype(np.uint16)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-to_bf16-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
for pattern, expected, hint in [
    (0x3F800000, 0x3F80, "1.0 is exact"),
    (0x3F807FFF, 0x3F80, "just below the middle"),
    (0x3F808001, 0x3F81, "just above the middle"),
    (0x3F808000, 0x3F80, "a tie, and the lower one is even"),
    (0x3F818000, 0x3F82, "a tie, and the upper one is even"),
    (0x7F7FFFFF, 0x7F80, "past the largest bf16 number comes infinity"),
    (0xFF800000, 0xFF80, "infinity stays infinity"),
]:
    x = np.array([pattern], np.uint32).view(np.float32)
    got = to_bf16(x)
    assert got[0] == expected, (
        f"0x{pattern:08X} becomes 0x{expected:04X}, not {got[0]:#06x}; {hint}"
    )
for pattern in (0x7FC00000, 0x7FFFFFFF, 0x7F800001):
    got = to_bf16(np.array([pattern], np.uint32).view(np.float32))[0]
    assert got & 0x7FFF > 0x7F80, f"0x{pattern:08X} is NaN, but yours becomes {got:#06x}"
assert to_bf16(np.zeros((2, 0, 3), np.float32)).shape == (2, 0, 3), "keep the shape"

weights = np.random.default_rng(0).normal(0, 0.02, 1_000_000).astype(np.float32)
patterns = to_bf16(weights)
back = (patterns.astype(np.uint32) << 16).view(np.float32)
error = np.max(np.abs(back - weights) / np.abs(weights))
print(
    f"{weights.nbytes / 1e6:.0f} MB ({weights.nbytes / 2**20:.1f} MiB) became "
    f"{patterns.nbytes / 1e6:.0f} MB ({patterns.nbytes / 2**20:.1f} MiB)"
)
print(f"largest relative error {error:.2%}; you predicted {predicted_error_percent} %")

# %% nbgrader={"grade": true, "grade_id": "lab01-to_bf16", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.6, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.stock import score

score("lab01-to_bf16", globals())
### END HIDDEN TESTS
