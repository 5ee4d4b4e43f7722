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
# A training fits if its **peak memory is below the available memory**. What fills this memory is
# numbers: weights, gradients, the optimizer's state, activations. So every byte count in this
# course is *how many numbers* times *bytes per number*. This lab is about the second factor: what
# a number of 4, 2 or 1 bytes can hold, and what it loses. A format that halves the memory is only
# a bargain if the training still works in it.
#
# **You will be able to**
# - read and write the bits of integers, fixed-point numbers, fp32, bf16 and fp8;
# - say from the number of exponent and mantissa bits what a format can hold;
# - predict when a sum stops growing and when an update of a weight is lost;
# - add up numbers in 16 bits without losing them.
#
# | exercise | minutes | points |
# |---|---|---|
# | 1.1 Integers, three ways | 10 | 2 |
# | 1.2 Fixed point | 5 | 1 |
# | 1.3 From bits to a number: fp32 | 15 | 4 |
# | 1.4 From a number to bits: fp32 | 30 | 4 |
# | 1.5 What a format can hold | 10 | 2 |
# | 1.6 Half the memory: bf16 | 15 | 3 |
# | 1.7 A quarter of the memory: fp8 | 10 | 1 |
# | 1.8 When a sum stops growing | 25 | 3 |
# | 1.9 A careful sum | 25 | 2 |
# | 1.10 The lost update | 15 | 1 |
# | 1.11 In your own words | 5 | 2 |
# | **total** | **165** | **25** |
#
# If bits are new to you, plan for twenty minutes more.
#
# Each exercise has the same rhythm. You **predict** a number (a plain variable; it is not graded),
# you **write** a function, the cell below **measures** and shows your prediction beside the result,
# and you **explain** the difference to yourself before you go on. That cell also checks your
# function with a few cases; when it passes, you are probably done. Grading tries many more.
#
# This lab needs no GPU.

# %% nbgrader={"grade": false, "grade_id": "lab01-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import importlib.util
import math
import subprocess
import sys
from pathlib import Path

if importlib.util.find_spec("peakmem") is None:  # on Colab, say
    wheels = [str(path) for path in Path().glob("peakmem-*.whl")]
    assert wheels, "Upload the file peakmem-...whl of the course's zip, and run this cell again."
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", wheels[-1]], check=True)
    importlib.invalidate_caches()

import matplotlib.pyplot as plt
import numpy as np
import torch
from IPython.display import display

import peakmem
from peakmem import plots
from peakmem.probes.lab01 import Float16Adder

peakmem.lab("lab01_formats")


def show(figure, alt):
    """Show a figure, with a text that says what is to be seen in it."""
    display(figure, metadata={"image/png": {"alt": alt}})
    plt.close(figure)


# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-integer_value-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.1 Integers, three ways (2 points, 10 minutes)
#
# Bits mean nothing by themselves: an *encoding* says what they are worth. Weights that are
# quantized to int8 or int4 are stored as the integers below, so we begin there. With *n* bits:
#
# | encoding | what the bits are worth | range |
# |---|---|---|
# | unsigned | 2^(n-1), ..., 4, 2, 1 | 0 ... 2^n - 1 |
# | sign-magnitude | the highest bit is the sign (1 is minus), the others are 2^(n-2), ..., 2, 1 | -(2^(n-1) - 1) ... 2^(n-1) - 1 |
# | two's complement | minus 2^(n-1) for the highest bit, then 2^(n-2), ..., 2, 1 | -2^(n-1) ... 2^(n-1) - 1 |
#
# Sign-magnitude has two zeros. Two's complement has one, and so it has one negative number more;
# besides, plain addition works on it. That is why hardware uses it.
#
# *If you compare with the lecture's slides:* they print the range -2^(n-1) - 1 ... 2^(n-1) - 1 for
# both. Both lower ends are wrong there: 8 bits begin at -127 and at -128, not at -129.
#
# Write `integer_value(bits, width, encoding)`:
# - `bits` is the pattern as an integer from 0 to 2^width - 1, `width` the number of bits.
# - `encoding` is `"unsigned"`, `"sign-magnitude"` or `"twos-complement"`. Any other raises
#   `ValueError`.
# - Return a Python integer. Both zeros of sign-magnitude are 0.
#
# *Python's tools for bits,* which you will need throughout the lab: `bits >> k` drops the lowest k
# bits, `bits & 0xFF` keeps the lowest 8 (0xFF is eight ones), `1 << k` is 2^k, `~bits` flips all
# bits, and `f"{bits:08b}"` shows a pattern. `>>` and `<<` bind weaker than `+` and `-`, and `&`
# weaker still: write parentheses.
#
# *Example:* the 8 bits `0b10110001` are 177 unsigned, -49 in sign-magnitude (minus `0110001`), and
# -128 + 49 = -79 in two's complement.
#
# **Predict first.** Which 8 bits are -1 in two's complement? Write them as `0b...`.

# %%
predicted_bits_of_minus_one = None  # your prediction, such as 0b10000001


# %% nbgrader={"grade": false, "grade_id": "lab01-integer_value-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def integer_value(bits: int, width: int, encoding: str) -> int:
    """Return the integer that `width` bits hold; ValueError for an unknown encoding."""
    ### BEGIN SOLUTION
    half = 1 << (width - 1)  # what the highest bit is worth without a sign
    if encoding == "unsigned":
        return bits
    if encoding == "sign-magnitude":
        return -(bits - half) if bits >= half else bits
    if encoding == "twos-complement":
        return bits - 2 * half if bits >= half else bits
    raise ValueError(f"no encoding {encoding!r}: unsigned, sign-magnitude or twos-complement")
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-integer_value-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.1, integers, three ways
for bits, width, encoding, expected in [
    (0b10110001, 8, "unsigned", 177),
    (0b10110001, 8, "sign-magnitude", -49),
    (0b10110001, 8, "twos-complement", -79),
    (0b11001111, 8, "twos-complement", -49),
    (0b10000000, 8, "sign-magnitude", 0),
    (0b10000000, 8, "twos-complement", -128),
    (0x8000, 16, "twos-complement", -32768),
    (0x00FF, 16, "twos-complement", 255),
]:
    got = integer_value(bits, width, encoding)
    assert got == expected, f"{bits:0{width}b} is {expected} in {encoding}, but you return {got}"
    assert not torch.as_tensor(got).is_floating_point(), (
        f"an integer is asked for, but you return {got}"
    )
try:
    integer_value(1, 8, "signed")
except ValueError:
    pass
else:
    raise AssertionError("'signed' is none of the three encodings: raise ValueError")
minus_one = next(b for b in range(256) if integer_value(b, 8, "twos-complement") == -1)
predicted = predicted_bits_of_minus_one
shown = f"0b{predicted:08b}" if isinstance(predicted, int) else predicted
print(f"-1 is 0b{minus_one:08b}; you predicted {shown}")

# %% nbgrader={"grade": true, "grade_id": "lab01-integer_value", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.1, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-integer_value", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-fixed_point_value-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.2 Fixed point (1 point, 5 minutes)
#
# To store fractions, put the binary point somewhere else. With *f* **fraction bits**, every bit is
# worth 2^f times less: the lowest one 2^-f instead of 1. The bits stay an integer in two's
# complement; only their unit changes. int8 weights work the same way, with a unit of their own for
# each group of weights, called its *scale*.
#
# Write `fixed_point_value(bits, width, fraction_bits)`:
# - `bits` and `width` as in 1.1; always two's complement; `fraction_bits` from 0 to `width`.
# - Return a Python float.
#
# *Example:* `0b0011_0001` with 4 fraction bits is 0011.0001 = 2 + 1 + 1/16 = 3.0625, which is
# 49 / 16.
#
# **Predict first.** What is the largest number with 8 bits, 4 of them fraction bits?

# %%
predicted_largest_fixed = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab01-fixed_point_value-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fixed_point_value(bits: int, width: int, fraction_bits: int) -> float:
    """Return the value of a fixed-point number in two's complement."""
    ### BEGIN SOLUTION
    return integer_value(bits, width, "twos-complement") / 2**fraction_bits
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-fixed_point_value-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.2, fixed point
got = fixed_point_value(0b0011_0001, 8, 4)
assert got == 3.0625, f"0011.0001 is 49 / 16 = 3.0625, but you return {got}"
got = fixed_point_value(0b1100_1111, 8, 4)
assert got == -3.0625, f"1100.1111 is -49 / 16 = -3.0625, but you return {got}"
got = fixed_point_value(0b1000_0000, 8, 7)
assert got == -1.0, f"1.0000000 is -128 / 128 = -1.0, but you return {got}"
got = fixed_point_value(0x00C0, 16, 8)
assert got == 0.75, f"00000000.11000000 is 192 / 256 = 0.75, but you return {got}"
numbers = [fixed_point_value(bits, 8, 4) for bits in range(256)]
print(f"8 bits with 4 fraction bits: {min(numbers)} to {max(numbers)} in steps of {2**-4}")
print(f"you predicted {predicted_largest_fixed} for the largest")

# %% nbgrader={"grade": true, "grade_id": "lab01-fixed_point_value", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.2, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-fixed_point_value", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-number_line-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## From fixed to floating
#
# A fixed point has the same gap everywhere. Near 1000 that is finer than anyone needs, and near
# 0.001 it is too coarse. A *floating* point moves with the number: large numbers have large gaps,
# small numbers small ones. Here are all numbers of the smallest format in use, FP4, with 1 sign bit,
# 2 exponent bits and 1 mantissa bit. From 2 on, the gap doubles at each power of two.

# %% tags=["demo"] nbgrader={"grade": false, "grade_id": "lab01-number_line", "locked": true, "schema_version": 3, "solution": false, "task": false}
positive = [0, 0.5, 1, 1.5, 2, 3, 4, 6]  # all that FP4 (E2M1) has, beside the negative ones
spans = [(-6, -4, 2), (-4, -2, 1), (-2, 2, 0.5), (2, 4, 1), (4, 6, 2)]
figure, ax = plt.subplots(figsize=(8, 2.2), layout="constrained")
plots.number_line(ax, [-x for x in positive] + positive, spans, label="numbers of FP4 (E2M1)")
show(
    figure,
    "Number line from -6 to 6 with a tick at each of the 15 values of FP4. "
    "Their gap is 0.5 up to 2, 1 from 2 to 4, and 2 from 4 to 6, on both sides of zero.",
)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-decode_fp32-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.3 From bits to a number: fp32 (4 points, 15 minutes)
#
# `fp32` (IEEE 754 binary32, `torch.float32`) divides its 32 bits into three fields:
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
# Self-check of 1.3, from bits to a number: fp32
def fields(bits):
    """Return the three fields of an fp32 pattern, written in binary."""
    text = f"{bits:032b}"
    return f"{text[0]} {text[1:9]} {text[9:]}"


for bits, expected, hint in [
    (0x3E880000, 0.265625, "1.0625 * 2**-2: is the leading 1 there, and the bias 127?"),
    (0x3E200000, 0.15625, "1.25 * 2**-3: the fraction's highest bit is worth 1/2"),
    (0xC0490000, -3.140625, "bit 31 is the sign"),
    (0x00800000, 2.0**-126, "the smallest normal number has exponent field 1"),
    (0x00000001, 2.0**-149, "exponent field 0: no leading 1, and 2**-126"),
    (0x80400000, -(2.0**-127), "a subnormal number has a sign too"),
    (0xFF800000, -math.inf, "exponent field 255 with fraction 0"),
]:
    got = decode_fp32(bits)
    assert got == expected, f"{fields(bits)} is {expected}, but you return {got}; {hint}"
assert math.copysign(1, decode_fp32(0x80000000)) == -1, "0x80000000 is -0.0: its sign is lost"
for bits in (0x7FC00000, 0x7F800001):
    assert math.isnan(decode_fp32(bits)), "exponent field 255, any fraction but 0: that is NaN"
# Of one sign: 2**23 patterns have exponent field 255, and all but one (infinity) are NaN.
print(f"NaN patterns: {2 * (2**23 - 1):,} of {2**32:,}; you predicted {predicted_nan_patterns}")

# %% nbgrader={"grade": true, "grade_id": "lab01-decode_fp32", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.3, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-decode_fp32", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-encode_fp32-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.4 From a number to bits: fp32 (4 points, 30 minutes)
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
# - Below 2^-126 the gap stays at 2^-149. Up to half of that, 2^-150 (a tie, and 0 is even), rounds
#   to zero.
# - Zeros (0.0 and -0.0), the infinities and NaN have patterns of their own. Treat them apart. Any
#   NaN pattern is right for NaN.
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
# Self-check of 1.4, from a number to bits: fp32
for x, bits, hint in [
    (0.265625, 0x3E880000, "an exact value"),
    (-3.140625, 0xC0490000, "bit 31 is the sign"),
    (1 + 2**-24, 0x3F800000, "a tie: the even pattern is the lower one"),
    (1 + 3 * 2**-24, 0x3F800002, "a tie: the even pattern is the upper one"),
    (1 + 2**-24 + 2**-40, 0x3F800001, "more than half a gap above 1.0"),
    (2 - 2**-25, 0x40000000, "the significand rounds up to 2.0, and the exponent grows"),
    (2.0**-149, 0x00000001, "the smallest subnormal number"),
    (2.0**-150, 0x00000000, "a tie between 0 and the smallest one"),
    (-(2.0**-150), 0x80000000, "what rounds to zero keeps its sign"),
    (3 * 2.0**-150, 0x00000002, "a tie of subnormal numbers: the even pattern is the upper one"),
    (3 * 2.0**-150 - 2.0**-180, 0x00000001, "just below that tie: round only once"),
    (2.0**-126 - 2.0**-151, 0x00800000, "rounds up to the smallest normal number"),
    (2.0**128 - 2.0**104 + 2.0**102, 0x7F7FFFFF, "a quarter of a gap above the largest number"),
    (2.0**128 - 2.0**103, 0x7F800000, "half a gap above the largest number: the tie goes up"),
    (1e39, 0x7F800000, "past the largest number"),
    (-1e39, 0xFF800000, "past the largest number, downwards"),
    (-math.inf, 0xFF800000, "infinity has exponent field 255 and fraction 0"),
    (0.0, 0x00000000, "zero has no leading 1 to look for"),
    (-0.0, 0x80000000, "-0.0 has its own pattern, though -0.0 == 0.0"),
]:
    got = encode_fp32(x)
    assert not torch.as_tensor(got).is_floating_point(), (
        f"an integer is asked for, but you return {got}"
    )
    shown = f"0x{int(got):08X}"
    assert got == bits, f"encode_fp32({x!r}) is 0x{bits:08X}, but you return {shown}; {hint}"
nan = encode_fp32(math.nan)
assert nan & 0x7FFFFFFF > 0x7F800000, "NaN: exponent field 255 and any fraction but 0"
error = abs(decode_fp32(int(encode_fp32(0.1))) - 0.1) / 0.1
print(f"fp32's 0.1 is off by {error:.1e} of its value; you predicted {predicted_error_of_a_tenth}")

# %% nbgrader={"grade": true, "grade_id": "lab01-encode_fp32", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.4, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-encode_fp32", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-format_limits-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.5 What a format can hold (2 points, 10 minutes)
#
# fp32 is one of a family. With *e* exponent bits and *m* mantissa bits (the stored fraction), all
# else follows: the bias is 2^(e-1) - 1, exponent field 0 holds zero and the subnormal numbers, and
# the highest one, all ones, holds infinity and NaN. Exponent bits buy **range**, mantissa bits buy
# **precision**, and together with the sign they cost 1 + e + m bits.
#
# Write `format_limits(exponent_bits, mantissa_bits)`, which returns a dict with exactly these keys:
# - `"max"`, the largest finite number;
# - `"min_normal"`, the smallest positive normal number (exponent field 1);
# - `"min_subnormal"`, the smallest positive number of all;
# - `"epsilon"`, the gap between 1 and the next number above it.
#
# All four are Python floats. They fit: exponent_bits is from 2 to 11 and mantissa_bits from 1 to 52;
# 11 and 52 are Python's own format.
#
# *Points:* half a point for each key.
#
# *Example:* fp16 has *e* = 5 and *m* = 10. Its bias is 15, its largest number is
# (2 - 2^-10) * 2^15 = 65504, and its epsilon is 2^-10.
#
# *Hint:* 2.0 ** 1024 is too large for a Python float. The largest number's own power of two is
# 2 ** bias, which always fits.
#
# **Predict first.** bf16 has *e* = 8 and *m* = 7. By what factor is its largest number larger than
# fp16's? A power of ten is enough.

# %%
predicted_ratio_of_largest = None  # your prediction, such as 1e3


# %% nbgrader={"grade": false, "grade_id": "lab01-format_limits-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def format_limits(exponent_bits: int, mantissa_bits: int) -> dict[str, float]:
    """Return max, min_normal, min_subnormal and epsilon of an IEEE-like format."""
    ### BEGIN SOLUTION
    bias = 2 ** (exponent_bits - 1) - 1
    return {
        "max": (2 - 2.0**-mantissa_bits) * 2.0**bias,
        "min_normal": 2.0 ** (1 - bias),
        "min_subnormal": math.ldexp(1.0, 1 - bias - mantissa_bits),
        "epsilon": 2.0**-mantissa_bits,
    }
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-format_limits-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.5, what a format can hold
for name, e, m in [("float16", 5, 10), ("bfloat16", 8, 7), ("float32", 8, 23), ("float64", 11, 52)]:
    limits = format_limits(e, m)
    keys = {"max", "min_normal", "min_subnormal", "epsilon"}
    assert set(limits) == keys, f"the keys are {sorted(keys)}, but you return {sorted(limits)}"
    torchs = torch.finfo(getattr(torch, name))
    for key, expected in [
        ("max", torchs.max),
        ("min_normal", torchs.smallest_normal),
        ("min_subnormal", torchs.smallest_normal * torchs.eps),
        ("epsilon", torchs.eps),
    ]:
        got = limits[key]
        assert got == expected, (
            f"{key} of {name} ({e}, {m}) is {expected!r}, but you return {got!r}"
        )
    print(f"{name:9}" + "".join(f"  {key} {value:.3g}" for key, value in limits.items()))
ratio = format_limits(8, 7)["max"] / format_limits(5, 10)["max"]
print(f"bf16's largest is {ratio:.1e} times fp16's; you predicted {predicted_ratio_of_largest}")

# %% nbgrader={"grade": true, "grade_id": "lab01-format_limits", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.5, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-format_limits", globals())
### END HIDDEN TESTS

# %% tags=["demo"] nbgrader={"grade": false, "grade_id": "lab01-relative_spacing", "locked": true, "schema_version": 3, "solution": false, "task": false}
formats = {  # name: exponent of the smallest normal number, of the largest number, mantissa bits
    "fp32": (-126, 127, 23),
    "fp16": (-14, 15, 10),
    "bf16": (-126, 127, 7),
    "fp8 E4M3": (-6, 8, 3),
    "fp8 E5M2": (-14, 15, 2),
}
curves = {}
for name, (lowest, highest, m) in formats.items():
    k = np.arange(lowest - m, highest + 1)  # all powers of two that the format has
    curves[name] = (2.0**k, 2.0 ** (np.maximum(k, lowest) - m - k))
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
plots.relative_spacing(ax, curves)
show(
    figure,
    "Gap to the next number divided by the value, over the value, for five formats. Each curve is "
    "flat over the normal numbers, at 2^-23 for fp32, 2^-10 for fp16, 2^-7 for bf16, 2^-3 and "
    "2^-2 for fp8, and rises to 1 over the subnormal numbers. fp32 and bf16 reach from about "
    "2^-149 and 2^-133 to 2^127; fp16 and fp8 cover a short stretch around 1.",
)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-relative_spacing-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** Each curve is flat over the normal numbers: a floating point has the same
# *relative* precision everywhere. On the left it rises, where the subnormal numbers give up one bit
# after another. Lower is more precise, wider is more range. (fp8 comes in two kinds: E4M3 has 4
# exponent and 3 mantissa bits, see 1.7; E5M2 has 5 and 2.) fp16 and bf16 both take 2 bytes: fp16
# spends them on precision, bf16 on range.
#
# The powers of two suffice to see it. Between them the relative gap falls to half and jumps back.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-to_bf16-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.6 Half the memory: bf16 (3 points, 15 minutes)
#
# `bf16` is the upper half of fp32: the same sign, the same 8 exponent bits, and 7 bits of fraction
# instead of 23. So it has fp32's range at half the memory, and conversion is cheap. Cutting the
# lower 16 bits off would round toward zero; a conversion rounds to the nearest, ties to even.
#
# Write `to_bf16(x)`:
# - `x` is a numpy array of float32, of any shape, maybe empty. Return an array of the same
#   shape with the bf16 patterns, as integers from 0 to 65535. `uint16` is the type that halves the
#   memory; a wider integer type counts alike. Leave `x` unchanged.
# - No Python loop, comprehension, `map` or `np.vectorize`: a model has billions of weights.
# - Past the largest bf16 number comes infinity. NaN stays NaN (any NaN pattern is right), and
#   infinity stays infinity.
# - What is not allowed is the same as in 1.3. `x` is float32 already, so you need not convert it;
#   `x.view(np.uint32)` shows its bits. Mind that such a view shares its memory with `x`, and that
#   uint32 wraps around without a warning.
#
# *Points:* nearest 1, ties to even 1, NaN and infinity 1.
#
# *Example:* 1 + 2^-8 = `0x3F80_8000` lies in the middle between `0x3F80` and `0x3F81`. The first is
# even, so it is the answer.
#
# **Predict first.** A million weights in fp32 take 4 MB, in bf16 they take 2. What is the largest
# relative error that this brings to any of them, in percent?

# %%
predicted_error_percent = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab01-to_bf16-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def to_bf16(x: np.ndarray) -> np.ndarray:
    """Return the bf16 patterns of a float32 array, nearest even, as integers in the same shape."""
    ### BEGIN SOLUTION
    bits = x.view(np.uint32)
    last = bits >> 16 & 1  # the last bit that stays: ties go up only where it is 1
    rounded = bits + 0x7FFF + last
    return np.where(np.isnan(x), 0x7FC0, rounded >> 16).astype(np.uint16)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-to_bf16-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.6, half the memory: bf16
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
        f"0x{pattern:08X} becomes 0x{expected:04X}, not 0x{int(got[0]):04X}; {hint}"
    )
for pattern in (0x7FC00000, 0x7FFFFFFF, 0x7F800001, 0xFFFFFFFF):
    got = to_bf16(np.array([pattern], np.uint32).view(np.float32))[0]
    assert got & 0x7FFF > 0x7F80, f"0x{pattern:08X} is NaN, but yours becomes 0x{int(got):04X}"
for shape in [(2, 3), (2, 0, 3)]:
    x = np.ones(shape, np.float32)
    got = np.asarray(to_bf16(x))
    assert got.shape == shape, f"the shape is {shape}, but you return one of {got.shape}"
    assert not got.size or got.dtype.kind in "iu", f"integers are asked for, not {got.dtype}"
    assert (x == 1).all(), "your function wrote into x: work on a copy of its bits"

weights = np.random.default_rng(0).normal(0, 0.02, 1_000_000).astype(np.float32)
patterns = np.asarray(to_bf16(weights))
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
from autograder.grading.stock import score

score("lab01-to_bf16", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-decode_e4m3-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.7 A quarter of the memory: fp8 (1 point, 10 minutes)
#
# With 8 bits every pattern counts. An IEEE-like format with 4 exponent bits would give 16 of its
# 256 patterns to infinity and NaN. **E4M3**, as the Open Compute Project (OCP) defines it, gives
# only two: it has no infinity, and only `S.1111.111` is NaN. All other patterns with the exponent
# field 15 are ordinary numbers, which nearly doubles the largest one.
#
# Write `decode_e4m3(bits)`:
# - `bits` from 0 to 255: 1 sign bit, 4 exponent bits with bias 7, 3 mantissa bits. Return a float.
# - Exponent field 0 holds zeros and subnormal numbers as in fp32, scaled by 2^-6. Keep -0.0.
# - What is not allowed is the same as in 1.3.
#
# *Example:* `0b0_1000_100` has *E* = 8 and mantissa 4, so it is (1 + 4/8) * 2^(8-7) = 3.0.
#
# **Predict first.** What is the largest finite number?

# %%
predicted_largest_e4m3 = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab01-decode_e4m3-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decode_e4m3(bits: int) -> float:
    """Return the value of an FP8 E4M3 number (OCP)."""
    ### BEGIN SOLUTION
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 3 & 0xF, bits & 0x7
    if exponent == 15 and mantissa == 7:
        return math.nan
    if exponent == 0:
        return sign * mantissa / 8 * 2.0**-6
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-decode_e4m3-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.7, a quarter of the memory: fp8
for bits, expected, hint in [
    (0b0_1000_100, 3.0, "1.5 * 2**1: is the bias 7?"),
    (0b1_0111_000, -1.0, "bit 7 is the sign"),
    (0b0_0000_001, 2.0**-9, "exponent field 0: no leading 1, and 2**-6"),
    (0b0_1111_000, 256.0, "exponent field 15 holds numbers too; there is no infinity"),
]:
    got = decode_e4m3(bits)
    assert got == expected, f"0b{bits:08b} is {expected}, but you return {got}; {hint}"
for bits in (0b0_1111_111, 0b1_1111_111):
    assert math.isnan(decode_e4m3(bits)), f"0b{bits:08b} is NaN: S.1111.111, with either sign"
assert math.copysign(1, decode_e4m3(0b1_0000_000)) == -1, "0b10000000 is -0.0: its sign is lost"
largest = max(value for value in map(decode_e4m3, range(256)) if not math.isnan(value))
print(f"the largest is {largest}; you predicted {predicted_largest_e4m3}")
ieee_like = format_limits(4, 3)["max"]
print(f"with infinity and NaN as IEEE has them it would be {ieee_like}")

# %% nbgrader={"grade": true, "grade_id": "lab01-decode_e4m3", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.7, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-decode_e4m3", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-stall_value-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.8 When a sum stops growing (3 points, 25 minutes)
#
# Training adds small numbers to large ones all the time: gradients to their sum, a learning rate's
# worth to a weight, losses to a running mean. In a floating-point sum, the gap grows with the sum,
# and the step does not. Once the step is less than half the gap (or just half of it, at an even
# number), it rounds away, and the sum **stalls**. No error tells you.
#
# Write `stall_value(step, exponent_bits, mantissa_bits)`:
# - Begin with s = 0.0. Add `step` exactly, round the sum to the format (nearest, ties to even), and
#   go on. Return the first s with round(s + step) == s.
# - The format is as in 1.5. Only the sums are rounded; `step` stays exact and is positive.
# - Where even the first addition is lost, that is `0.0`. Where the sum grows past the largest
#   number, it becomes infinity and stays there: `math.inf`.
# - You may simulate the small formats, but not fp32: 0.01 takes millions of additions there, and
#   grading stops what takes too long. Think first.
#
# *Example:* fp16 has gaps of 2^-6 = 0.015625 between 16 and 32, and of 0.03125 from 32 on. A step of
# 0.01 is more than half of the first and less than half of the second. So the answer is 32.0.
#
# *Hints:* What is the gap just below a power of two, and just above it? Suppose that the step is
# between half a gap and a whole gap: which numbers does the sum go through? And when step is
# exactly half a gap, which of the two neighbours is even? (`math.log2` is rounded, and misses a step
# just above a power of two; `math.frexp` is exact.)
#
# *Points:* all or nothing.
#
# **Predict first.** Add 0.01 a thousand times in fp16. The exact sum is 10. What do you get?

# %%
predicted_sum_in_fp16 = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab01-stall_value-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stall_value(step: float, exponent_bits: int, mantissa_bits: int) -> float:
    """Return where a sum of equal steps stops growing."""
    ### BEGIN SOLUTION
    limits = format_limits(exponent_bits, mantissa_bits)
    if step <= limits["min_subnormal"] / 2:
        return 0.0  # a tie goes to 0, which is even
    # From 2**k on the gap is 2**(k - m). The sum gets exactly to each power of two where the gap
    # below it is less than twice the step; it stalls at the first where the gap is twice the step.
    fraction, k = math.frexp(step)  # step <= 2**k
    if fraction == 0.5:
        k -= 1  # step is a power of two: the tie goes back to 2**k, which is even
    stall = math.ldexp(1.0, k + mantissa_bits + 1)
    return stall if stall <= limits["max"] else math.inf
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-stall_value-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.8, when a sum stops growing
def running_sums(step, count):
    """Return the sums 0, step, 2 * step, ... as float16 has them: each one is rounded."""
    sums = [np.float16(0)]
    for _ in range(count):
        sums.append(np.float16(float(sums[-1]) + step))
    return np.array(sums)


for step, e, m, expected, hint in [
    (0.01, 5, 10, 32.0, "the gap is 2**-5 from 32 on"),
    (1.0, 5, 10, 2048.0, "2048 + 1 is a tie, and 2048 is even"),
    (0.01, 8, 7, 4.0, "bf16 has 3 bits less, and stalls at an 8th of fp16's sum"),
    (0.01, 8, 23, 262144.0, "fp32 stalls too, but later"),
    (2.0**-25, 5, 10, 0.0, "half the smallest number is a tie, and 0 is even"),
    (2.0**-24, 5, 10, 2.0**-13, "the smallest number has a gap of its own size up to 2**-13"),
    (1.5 * 2.0**-25, 5, 10, 2.0**-13, "less than the smallest number, but more than half of it"),
    (16.0, 5, 10, 32768.0, "a tie at the largest power of two that fp16 has"),
    (17.0, 5, 10, math.inf, "more than half of the largest gap: the sum passes 65504"),
    (2.0**-6 + 2.0**-58, 5, 10, 64.0, "a step just above 2**-6, half of the gap from 32 on"),
]:
    got = stall_value(step, e, m)
    assert got == expected, (
        f"steps of {step} stall at {expected} with e={e}, m={m}, not {got}; {hint}"
    )
assert stall_value(0.3, 5, 10) == running_sums(0.3, 5000)[-1], "0.3 in float16, by simulation"
print(
    f"1000 times 0.01 in fp16 is {running_sums(0.01, 1000)[-1]:.3f}, you predicted "
    f"{predicted_sum_in_fp16}; it stalls at {stall_value(0.01, 5, 10)}"
)

# %% nbgrader={"grade": true, "grade_id": "lab01-stall_value", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.8, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-stall_value", globals())
### END HIDDEN TESTS

# %% tags=["demo"] nbgrader={"grade": false, "grade_id": "lab01-stalling_sum", "locked": true, "schema_version": 3, "solution": false, "task": false}
step, count = 0.01, 4000
sums = [np.float16(0)]
for _ in range(count):
    sums.append(np.float16(float(sums[-1]) + step))
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
curves = {"exact": step * np.arange(count + 1), "float16": np.array(sums, float)}
plots.running_sum(ax, curves, stalls_at=32.0)
show(
    figure,
    "Sum of 0.01 over the number of additions, exact and in float16. float16 follows the exact line "
    "up to 4, grows faster from 4 to 8, slower from 8 to 16 and faster from 16 to 32, which it "
    "reaches after 2798 additions, and stays there for good.",
)
print(f"after 1000 additions: {sums[1000]:.3f}; stalls after {sums.index(sums[-1])}")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-stalling_sum-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** The curve is made of straight pieces: between two powers of two the gap is
# the same, so every step of 0.01 is rounded to the same multiple of it. Up to 4 that is nearly 0.01.
# Between 4 and 8 the gap is 0.00390625, and each step counts as three gaps, 0.0117: too fast.
# Between 8 and 16 the gap is 0.0078125, and each step counts as one gap: too slow. Between 16 and 32
# the gap is 0.015625, and each step counts as one gap again: too fast. At 32 each step counts as
# nothing. After 1000 additions, at 9.953, two of these errors happen to cancel nearly.
#
# Note that the error is *systematic*. It does not average out, however many steps you take.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-careful_sum-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.9 A careful sum (2 points, 25 minutes)
#
# You have only float16 to add with, and still want the sum of a thousand numbers. The part of `y`
# that an addition `s + y` loses can itself be computed, with additions in float16. Keep it, and add
# it to the next element *before* that is added to the sum. Then the error hardly grows with the
# number of terms, up to some thousands. Some optimizers keep their weights in 16 bits that way,
# without a copy in 32 bits.
#
# Write `careful_sum(x, add)`:
# - `x` is a float16 array of one dimension, with sum(abs(x)) < 65504. Leave it unchanged.
# - `add(a, b)` is the only adder: it adds in float16, counts, and returns a Python float. Each
#   argument is an element of `x`, a number that `add` returned, the negative of one of these, or 0.
#   You may look at numbers, compare and sort them as you like; only adding goes through `add`.
# - Return a number that `add` returned. For an empty `x` return 0.0 without calling it.
# - Call `add` at most 4 * len(x) times: four for each element, and none to spare.
# - The error is at most 4 * 2^-11 * sum(abs(x)) + 2^-25 on **every** array of up to 1000 elements.
#   (2^-11 is the largest relative error of one addition; 2^-25 is half of float16's smallest
#   number, so that tiny sums are not asked to be exact.) A method that is good on average is not
#   enough. All or nothing: 2 points.
#
# *Example:* adding 1 to 2048 in float16 gives 2048, since 2049 is a tie. `add(2048, 1)` returns
# 2048.0; `add(2048.0, -2048)` returns 0.0: of the 1 nothing arrived, so 1 is still owed.
#
# *Hint:* after `t = add(s, y)`, what did `s` really gain? Compare it with `y`.
#
# **Predict first.** Plain addition from left to right, a thousand elements of 20.0: what is the sum?

# %%
predicted_plain_sum = None  # your prediction, a number

# %% nbgrader={"grade": false, "grade_id": "lab01-careful_sum-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
from collections.abc import Callable


def careful_sum(x: np.ndarray, add: Callable[[float, float], float]) -> float:
    """Return the sum of a float16 array, added in float16."""
    ### BEGIN SOLUTION
    total = too_much = 0.0  # Kahan's compensated sum (1965)
    for element in x:
        y = add(element, -too_much)
        t = add(total, y)
        too_much = add(add(t, -total), -y)  # what total gained, less what it should have
        total = t
    return total
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-careful_sum-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.9, a careful sum
def plain_sum(x, add):
    """Return the sum from left to right."""
    total = 0.0
    for element in x:
        total = add(total, element)
    return total


generator = np.random.default_rng(1)
tree = np.zeros(512)
tree[0], tree[[1, 2, 4, 8, 16, 32, 64, 128, 256]] = 1024, 0.498
for name, numbers in [
    ("a thousand times 20.0", np.full(1000, 20.0)),
    ("a thousand times 0.3", np.full(1000, 0.3)),
    ("random ones", generator.normal(0, 1, 1000)),
    ("one large, then small ones", np.append(2048.0, np.ones(500))),
    ("one small one at each level of a tree", tree),
    ("one element", np.array([1.5])),
    ("none", np.array([])),
]:
    x = numbers.astype(np.float16)
    exact, size = math.fsum(x.tolist()), math.fsum(np.abs(x).tolist())
    add = Float16Adder(x)
    got = careful_sum(x, add)
    allowed = 4 * 2.0**-11 * size + 2.0**-25
    assert abs(got - exact) <= allowed, f"{name}: {exact:.6g} within {allowed:.3g}, not {got:.6g}"
    assert add.calls <= 4 * len(x), f"{name}: at most {4 * len(x)} calls of add, not {add.calls}"
    if len(x):
        assert got in add.log().sum(axis=1), f"{name}: {got} is no number that add returned"
        plain = plain_sum(x, Float16Adder(x))
        print(f"{name}: exact {exact:.6g}, yours {got:.6g}, plain {plain:.6g}")
print(f"you predicted {predicted_plain_sum} for the plain sum of a thousand times 20.0")

# %% nbgrader={"grade": true, "grade_id": "lab01-careful_sum", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.9, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-careful_sum", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-update_lost-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.10 The lost update (1 point, 15 minutes)
#
# `param += -lr * grad` is a sum as well. Above a weight of 1.0, bf16 has gaps of 2^-7, about 0.8 %.
# An update of less than half of that changes nothing, in this step and in all later ones.
#
# Write `update_lost(param, update, exponent_bits, mantissa_bits)`:
# - Round `param` and `update` to the format, add them, and round the sum. Return True if it is
#   `param` (as rounded), and False if it moved.
# - The format is as in 1.5, with at most 23 mantissa bits, so that a Python float is precise enough
#   to add in. Rounding is nearest even, and what is past the largest number is infinity. Inputs are
#   finite, of either sign.
#
# *Example:* in fp16, 1.0 + 2^-11 is a tie that goes back to 1.0: lost. But 1.0 - 2^-11 is
# itself a number of fp16, since below a power of two the gap is half as wide: not lost.
#
# *Hint:* a function that rounds one float to the format makes this easy. It is your
# `encode_fp32` again, with other numbers for 8 and 23, and with the rounded number as its result
# instead of the pattern. It may meet infinity, which `round` refuses: treat that apart.
#
# **Predict first.** Weights of a typical size (normal, standard deviation 0.02) get updates of
# 0.00001. What share of them does not change at all, in bf16?

# %%
predicted_share_lost = None  # your prediction, between 0 and 1


# %% nbgrader={"grade": false, "grade_id": "lab01-update_lost-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def update_lost(param: float, update: float, exponent_bits: int, mantissa_bits: int) -> bool:
    """Tell whether param + update rounds back to param in the format."""
    ### BEGIN SOLUTION
    limits = format_limits(exponent_bits, mantissa_bits)

    def rounded(x: float) -> float:
        if x == 0 or math.isinf(x):
            return x
        lowest = math.frexp(limits["min_normal"])[1]
        exponent = max(math.frexp(x)[1], lowest) - 1 - mantissa_bits  # of the gap
        nearest = math.ldexp(round(math.ldexp(x, -exponent)), exponent)
        return nearest if abs(nearest) <= limits["max"] else math.copysign(math.inf, x)

    stored = rounded(param)
    return rounded(stored + rounded(update)) == stored
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-update_lost-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.10, the lost update
for param, update, e, m, lost, hint in [
    (1.0, 2.0**-11, 5, 10, True, "a tie goes back to the even number"),
    (1.0 + 2.0**-10, 2.0**-11, 5, 10, False, "a tie moves on from an odd number"),
    (1.0, -(2.0**-11), 5, 10, False, "below a power of two the gap is half as wide"),
    (1.0, 2.0**-9, 8, 7, True, "a quarter of bf16's gap"),
    (1.0, 2.0**-9, 8, 23, False, "fp32's gap is far smaller"),
    (0.1, 1e-9, 5, 10, True, "0.1 is rounded to the format first, and compared as rounded"),
    (1.00073, -0.0004, 5, 10, True, "param is rounded to 1 + 2**-10 first, and added then"),
    (1.0, 2.0**-11 + 2.0**-23, 5, 10, True, "update is rounded first, to 2**-11: then it is a tie"),
    (0.0, 2.0**-24, 5, 10, False, "the smallest number of fp16, added to zero"),
    (2.0**-24, 2.0**-26, 5, 10, True, "subnormal numbers have a gap of 2**-24"),
    (65504.0, 16.0, 5, 10, False, "half a gap above the largest number: it moves to infinity"),
    (1e6, 1e4, 5, 10, True, "1e6 is infinity in fp16, and infinity stays what it is"),
]:
    got = update_lost(param, update, e, m)
    assert got == lost, f"update_lost({param}, {update}, {e}, {m}) is {lost}, not {got}; {hint}"
weights = np.random.default_rng(0).normal(0, 0.02, 5000).tolist()
for name, e, m in [("fp16", 5, 10), ("bf16", 8, 7), ("fp32", 8, 23)]:
    share = sum(update_lost(weight, 1e-5, e, m) for weight in weights) / len(weights)
    print(f"{name}: {share:.1%} of the updates are lost")
print(f"you predicted {predicted_share_lost} for bf16")

# %% nbgrader={"grade": true, "grade_id": "lab01-update_lost", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.10, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-update_lost", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.11 In your own words (2 points, 5 minutes)
#
# A friend trains a model with all weights in bf16, to halve their memory, and adds each update right
# to them. The loss falls for a while and then stays where it is, though the gradients are not zero.
# In a sentence each: what happens to the updates (1 point); why would fp16 have lost fewer of them
# although it takes 2 bytes too (half a point); and what could your friend keep in fp32, at how many
# more bytes a weight (half a point)?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab01-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# An update below half the gap around its weight rounds away, and bf16 with its 7 mantissa bits has
# gaps of about 0.4 to 0.8 % of the weight. fp16 has 10 mantissa bits, so its gaps are 8 times
# smaller (it pays with range). A copy of the weights in fp32, to which the updates are added, costs
# 4 more bytes a weight; bf16 weights are rounded from it for each step.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - Bytes per number are a choice: 4 (fp32), 2 (fp16, bf16) or 1 (fp8), and every byte count of this
#   course is multiplied by it.
# - Exponent bits buy range, mantissa bits buy precision. bf16 is fp32 with 16 mantissa bits cut off,
#   by rounding to the nearest, ties to even.
# - The gap doubles at every power of two; the relative precision stays the same, down to the
#   subnormal numbers.
# - A sum stalls once the step is less than half a gap, or just half of it at an even number. In
#   fp16, steps of 0.01 get no further than 32.
# - `param += update` can change nothing at all. Lab 7 keeps a copy of the weights in fp32 for it,
#   and counts what that costs; a compensated sum (Kahan, 1965), as in 1.9, is the other way out.
