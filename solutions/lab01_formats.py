# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: nbgrader,tags,slideshow,jupyter,-all
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
# Training fits if its **peak memory is below the available memory**. Numbers fill that memory: weights,
# gradients, optimizer state, activations. A byte count is *how many numbers* times *bytes per number*. This
# lab is about the second factor: what 4, 2, or 1 bytes can hold.
#
# **You will be able to**
# - read the bits of integers, fp32, bf16, and fp8, and say what a format can hold;
# - predict when an update is lost, and when a sum stalls;
# - spot a view that keeps memory alive.
#
# | exercise | part | minutes | points |
# |---|---|---|---|
# | 1.1 Integers, three ways | core | 9 | 2 |
# | 1.2 Fixed point | core | 4 | 1 |
# | 1.3 From bits to a number: fp32 | core | 14 | 4 |
# | 1.4 What a format can hold | core | 8 | 2 |
# | 1.5 A quarter of the memory: fp8 | core | 5 | 1 |
# | 1.6 Half the memory: bf16 | core | 13 | 3 |
# | 1.7 The lost update | core | 8 | 1 |
# | 1.8 Find the leak | core | 8 | 2 |
# | 1.9 In your own words | core | 6 | 2 |
# | 1.10 From a number to bits: fp32 | stretch | 18 | 4 |
# | 1.11 When a sum stops growing | stretch | 14 | 3 |
# | 1.12 A careful sum | stretch | 13 | 2 |
# | **core** | | **75** | **18** |
# | **stretch** | | **45** | **9** |
#
# The core stands alone; 1.1 includes two minutes for this page. If bits are new to you, add twenty minutes.
#
# In each exercise you **predict** (not graded), **write** a function, **measure**, and
# **explain** the difference to yourself. Measurements wait for your prediction. Self-checks are collapsed to
# one line; click one to open it. Grading tries more cases than the self-checks do. You don't need a GPU.

# %% nbgrader={"grade": false, "grade_id": "lab01-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import importlib.util
import math
import operator
import subprocess
import sys
from pathlib import Path

if importlib.util.find_spec("peakmem") is None:  # for example on Colab
    wheels = [str(path) for path in Path().glob("peakmem-*.whl")]
    assert wheels, "Upload the file peakmem-...whl from the course's zip, then run this cell again."
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", wheels[-1]], check=True)
    importlib.invalidate_caches()

import numpy as np
import torch

import peakmem
from peakmem.labs import Case, lab01, predicted, self_check, whole
from peakmem.labs.lab01 import rounded
from peakmem.probes.lab01 import Float16Adder

peakmem.lab("lab01_formats")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-integer_value-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.1 Integers, three ways (core, 2 points, 9 minutes)
#
# An *encoding* says what each bit is worth. Weights in int8 and int4 are integers encoded this way.
# With $n$ bits:
#
# | encoding | what the bits are worth | range |
# |---|---|---|
# | unsigned | $2^{n-1}, \dots, 4, 2, 1$ | $0 \dots 2^n - 1$ |
# | sign-magnitude | the highest is the sign (1 is minus), the others $2^{n-2}, \dots, 2, 1$ | $-(2^{n-1} - 1) \dots 2^{n-1} - 1$ |
# | two's complement | $-2^{n-1}$ for the highest, then $2^{n-2}, \dots, 2, 1$ | $-2^{n-1} \dots 2^{n-1} - 1$ |
#
# Write `integer_value(bits, width, encoding)`:
# - `bits` is the pattern, an integer of `width` bits. Support any `width` from 2 to 63.
# - `encoding` is `"unsigned"`, `"sign-magnitude"`, or `"twos-complement"`. The code you are given rejects any
#   other.
# - Return a Python integer. Sign-magnitude has two zeros; both are 0.
#
# *Points:* all or nothing.
#
# *Python's tools:* `bits >> k` drops the lowest $k$ bits, `bits & 0xFF` keeps the lowest 8, `1 << k` is
# $2^k$. All three bind less tightly than `+`, so use parentheses.
#
# *Example:* the 8 bits `0b10110001` are 177 unsigned, $-49$ in sign-magnitude, and $-128 + 49 = -79$ in
# two's complement.
#
# **Predict first.** Which 8 bits are $-1$ in two's complement? Write them as `0b...`.

# %%
predicted_bits_of_minus_one = None  # your prediction, such as 0b10000001


# %% nbgrader={"grade": false, "grade_id": "lab01-integer_value-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def integer_value(bits: int, width: int, encoding: str) -> int:
    """Return the integer that `width` bits hold; ValueError for an unknown encoding."""
    if encoding not in ("unsigned", "sign-magnitude", "twos-complement"):
        raise ValueError(
            f"unknown encoding {encoding!r}: expected unsigned, sign-magnitude or twos-complement"
        )
    half = 1 << (width - 1)  # what the highest bit is worth without a sign
    ### BEGIN SOLUTION
    if encoding == "unsigned" or bits < half:
        return bits
    if encoding == "sign-magnitude":
        return -(bits - half)
    return bits - 2 * half
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-integer_value-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.1, integers, three ways
self_check(
    integer_value,
    [
        Case((bits, width, name), value, hint, label=f"0b{bits:0{width}b} in {name}: {value}")
        for bits, width, name, value, hint in [
            (0b10110001, 8, "unsigned", 177, "all bits count"),
            (0b10110001, 8, "sign-magnitude", -49, "the highest bit is only the sign"),
            (0b10110001, 8, "twos-complement", -79, "the highest bit is worth -128"),
            (0b10000000, 8, "sign-magnitude", 0, "this is the second zero"),
            (0b10000000, 8, "twos-complement", -128, "the lowest value"),
            (0x8000, 16, "twos-complement", -32768, "the highest bit is bit number width - 1"),
            (0x00FF, 16, "twos-complement", 255, "the highest bit is bit number width - 1"),
            (0b10110001, 16, "twos-complement", 177, "the highest bit is bit number width - 1"),
            (0b101, 3, "twos-complement", -3, "width may be any number of bits"),
            (2**60 - 1, 60, "unsigned", 2**60 - 1, "floats and int32 have too few bits"),
        ]
    ]
    + [
        Case((bits, 8, name), raises=ValueError, hint="raise ValueError for an unknown encoding")
        for bits, name in [
            (0b11111111, "signed"),
            (1, "magnitude"),
            (1, "Unsigned"),
            (1, "two's complement"),
            (1, "unsigned int"),
            (1, "twos_complement"),
        ]
    ],
    equal=whole(),
)
if predicted(predicted_bits_of_minus_one, question="which 8 bits are -1?"):
    minus_one = next(b for b in range(256) if integer_value(b, 8, "twos-complement") == -1)
    print(f"-1 is 0b{minus_one:08b} = {minus_one}; you predicted {predicted_bits_of_minus_one}")

# %% nbgrader={"grade": true, "grade_id": "lab01-integer_value", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.1, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-integer_value", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-fixed_point_value-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.2 Fixed point (core, 1 point, 4 minutes)
#
# With $f$ **fraction bits**, divide what each bit is worth in two's complement by $2^f$.
#
# Write `fixed_point_value(bits, width, fraction_bits)`: `bits` and `width` as in 1.1. Return a float.
# *Points:* all or nothing.
#
# *Example:* `0b0011_0001` with 4 fraction bits is $0011.0001_2 = 2 + 1 + 1/16 = 3.0625 = 49/16$.
# **Predict first.** What is the largest number that 8 bits can hold if 4 of them are fraction bits?

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
self_check(
    fixed_point_value,
    [
        Case((0b0011_0001, 8, 4), 3.0625, "0011.0001 is 49 / 16"),
        Case((0b1100_1111, 8, 4), -3.0625, "1100.1111 is -49 / 16"),
        Case((0b1000_0000, 8, 7), -1.0, "1.0000000 is -128 / 128"),
        Case((0x00C0, 16, 8), 0.75, "00000000.11000000 is 192 / 256"),
        Case(
            (0b1011, 4, 0), -5.0, "there are no fraction bits, and the sign is bit number width - 1"
        ),
        Case((0b1011, 8, 0), 11.0, "the sign is bit number width - 1"),
        Case((0b1011, 4, 1), -2.5, "-5 / 2"),
        Case((0b1000, 4, 4), -0.5, "all four are fraction bits, and the highest is also the sign"),
        Case((0x7FFFFFFF, 32, 31), 1 - 2.0**-31, "don't round: a Python float holds all of it"),
    ],
)
if predicted(predicted_largest_fixed, question="what is the largest number?"):
    numbers = [fixed_point_value(bits, 8, 4) for bits in range(256)]
    print(f"{min(numbers)} to {max(numbers)}; you predicted {predicted_largest_fixed}")

# %% nbgrader={"grade": true, "grade_id": "lab01-fixed_point_value", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.2, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-fixed_point_value", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-number_line-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## From fixed to floating
#
# Fixed-point numbers have the same gap everywhere: too fine near 1000, too coarse near 0.001. A *floating*
# point moves with the number. The picture shows every number in FP4, the smallest floating-point format in
# use. From 2 on, the gap doubles at each power of two.

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab01-number_line", "locked": true, "schema_version": 3, "solution": false, "task": false}
lab01.show_number_line()

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-decode_fp32-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.3 From bits to a number: fp32 (core, 4 points, 14 minutes)
#
# fp32 (IEEE 754 binary32, `torch.float32`) splits its 32 bits into three fields: a sign $S$ (bit 31), an
# exponent $E$ (bits 30 to 23), and a fraction $F$ (bits 22 to 0). Here they hold 0.15625:

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab01-bit_fields", "locked": true, "schema_version": 3, "solution": false, "task": false}
lab01.show_bit_fields()

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-decode_fp32-rules", "locked": true, "schema_version": 3, "solution": false, "task": false}
# | $E$ | value |
# |---|---|
# | 1 ... 254, normal | $(-1)^S \cdot (1 + F/2^{23}) \cdot 2^{E-127}$ |
# | 0, subnormal (zero if $F = 0$) | $(-1)^S \cdot (F/2^{23}) \cdot 2^{-126}$ |
# | 255 | $F = 0$: infinity with that sign; otherwise NaN, "not a number" |
#
# The 127 is the **bias**: it lets $E$ stand for negative powers too. The leading 1 isn't stored, so 23 bits
# give 24 bits of precision. Exponent field 0 has no leading 1; otherwise no pattern could be zero. It uses
# the same power as $E = 1$, so the gap stays the same.
#
# Write `decode_fp32(bits)`:
# - Return the value of `bits` as a Python float, which holds every fp32 value exactly.
# - $-0.0$ is not 0.0: keep the sign.
# - Take the bits apart with arithmetic. Don't use float16, float32, bfloat16, or float8 as a cast or a view;
#   `struct`'s codes `e` and `f`; `float.hex` and `float.fromhex`; `torch`, `ml_dtypes`, or this lab's
#   `rounded`. Integers, float64, and `struct`'s code `d` are fine.
#
# *Points:* normal 1, subnormal 1, zeros 1, infinity and NaN 1.
#
# *Example:* `0x3E880000` is `0 01111101 00010000000000000000000`: $S = 0$, $E = 125$, $F/2^{23} = 0.0625$.
# Its value is $1.0625 \cdot 2^{-2} = 0.265625$.
#
# **Predict first.** How many of the $2^{32}$ patterns are NaN?

# %%
predicted_nan_patterns = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab01-decode_fp32-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decode_fp32(bits: int) -> float:
    """Return the value of the fp32 number that these 32 bits hold."""
    exponent = bits >> 23 & 0xFF  # E
    fraction = (bits & 0x7FFFFF) / 2**23  # F / 2**23
    ### BEGIN SOLUTION
    sign = -1.0 if bits >> 31 else 1.0
    if exponent == 255:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * fraction * 2.0**-126
    return sign * (1 + fraction) * 2.0 ** (exponent - 127)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-decode_fp32-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.3, from bits to a number: fp32
self_check(
    decode_fp32,
    [
        Case((bits,), value, hint, label=f"0x{bits:08X} is {lab01.fields(bits)}: {value}")
        for bits, value, hint in [
            (
                0x3E880000,
                0.265625,
                "1.0625 * 2**-2: did you add the leading 1, and is the bias 127?",
            ),
            (0x3E200000, 0.15625, "1.25 * 2**-3: the fraction's highest bit is worth 1/2"),
            (0xC0490000, -3.140625, "bit 31 is the sign"),
            (0x00800000, 2.0**-126, "the smallest normal number has exponent field 1"),
            (0x7F7FFFFF, 2.0**128 - 2.0**104, "the largest number has exponent field 254"),
            (0x00000001, 2.0**-149, "exponent field 0: no leading 1, and 2**-126"),
            (0x80400000, -(2.0**-127), "a subnormal number has a sign too"),
            (0x00000000, 0.0, "all bits 0: the value is 0.0"),
            (0x80000000, -0.0, "minus zero: keep the sign"),
            (0xFF800000, -math.inf, "exponent field 255 with fraction 0"),
            (0x7FC00000, math.nan, "exponent field 255 with a nonzero fraction"),
            (0xFF800001, math.nan, "a NaN may have its sign bit set"),
        ]
    ]
    + [
        Case(
            (decode_fp32,),
            [],
            "the rules of 1.3 forbid these, and grading checks your code for them",
            label="no tool that the rules forbid",
            function=lab01.not_allowed,
        )
    ],
)
if predicted(predicted_nan_patterns, question="how many patterns are NaN?"):
    # For each sign, 2**23 patterns have exponent field 255; all but one (infinity) are NaN.
    print(f"{2 * (2**23 - 1):,} of {2**32:,}; you predicted {predicted_nan_patterns}")

# %% nbgrader={"grade": true, "grade_id": "lab01-decode_fp32", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.3, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-decode_fp32", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-bit_flipper-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Play with it
#
# Click a bit to flip it; your `decode_fp32` computes the value. Which bit makes 0.15625 negative? Which
# doubles it?

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab01-bit_flipper", "locked": true, "schema_version": 3, "solution": false, "task": false}
lab01.bit_flipper(decode_fp32)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-format_limits-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.4 What a format can hold (core, 2 points, 8 minutes)
#
# fp32 is one of a family. With $e$ exponent bits and $m$ mantissa bits (the stored fraction), the bias is
# $2^{e-1} - 1$; an exponent field of all zeros or all ones means what it does in fp32. Exponent bits buy
# **range**, mantissa bits buy **precision**.
#
# Write `format_limits(exponent_bits, mantissa_bits)`, with $e$ from 2 to 11 and $m$ from 1 to 52. Return a
# dict of floats with exactly these keys:
# - `"max"`, the largest finite number;
# - `"min_normal"`, the smallest positive normal number (exponent field 1);
# - `"min_subnormal"`, the smallest positive number of all;
# - `"epsilon"`, the gap between 1 and the next number above it.
#
# *Points:* half a point per key.
#
# *Example:* fp16 has $e = 5$ and $m = 10$. Its bias is 15, its largest number is
# $(2 - 2^{-10}) \cdot 2^{15} = 65504$, and its epsilon is $2^{-10}$.
#
# *Hint:* $2^{1024}$ is too large for a Python float, but $2^\text{bias}$ always fits.
#
# **Predict first.** bf16 has $e = 8$ and $m = 7$. How many times larger is its largest number than
# fp16's? A power of ten is enough.

# %%
predicted_ratio_of_largest = None  # your prediction, such as 1e3


# %% nbgrader={"grade": false, "grade_id": "lab01-format_limits-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def format_limits(exponent_bits: int, mantissa_bits: int) -> dict[str, float]:
    """Return max, min_normal, min_subnormal and epsilon of an IEEE-like format."""
    bias = 2 ** (exponent_bits - 1) - 1
    ### BEGIN SOLUTION
    return {
        "max": (2 - 2.0**-mantissa_bits) * 2.0**bias,
        "min_normal": 2.0 ** (1 - bias),
        "min_subnormal": math.ldexp(1.0, 1 - bias - mantissa_bits),
        "epsilon": 2.0**-mantissa_bits,
    }
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-format_limits-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.4, what a format can hold
def limit_of(e, m, key):
    """Return one of the four numbers."""
    return format_limits(e, m)[key]


hints = {
    "max": "exponent field all ones is infinity or NaN: the largest number's field is one less",
    "min_normal": "exponent field 1 and fraction 0",
    "min_subnormal": "exponent field 0, with only the last bit of the fraction set",
    "epsilon": "the next number above 1 has only the last bit of the fraction set",
}
self_check(
    limit_of,
    [
        Case((e, m, key), value, hints[key], label=f"{key} of {name}: {value:.4g}")
        for name, e, m in [("float16", 5, 10), ("bfloat16", 8, 7)]
        for key, value in lab01.limits_by_torch(name).items()
    ]
    + [
        Case(
            (11, 52),
            lab01.limits_by_torch("float64"),
            "the bias is 1023: 2.0**1024 is too large for a Python float, 2.0**1023 is not",
            label="all four limits of float64",
            function=format_limits,
        ),
        Case(
            (2, 30),
            {"max": 4 - 2.0**-29, "min_normal": 1, "min_subnormal": 2.0**-30, "epsilon": 2.0**-30},
            "support any e and m: here the bias is 1",
            function=format_limits,
        ),
        Case(
            (2, 10),
            {"max": 4 - 2.0**-9, "min_normal": 1, "min_subnormal": 2.0**-10, "epsilon": 2.0**-10},
            "support any e and m: here the bias is 1",
            function=format_limits,
        ),
        Case(
            (5, 10),
            ["epsilon", "max", "min_normal", "min_subnormal"],
            "exactly these four keys",
            label="the keys",
            function=lambda e, m: sorted(format_limits(e, m)),
        ),
    ],
)
if predicted(predicted_ratio_of_largest, question="how many times larger is bf16's largest?"):
    ratio = format_limits(8, 7)["max"] / format_limits(5, 10)["max"]
    print(f"{ratio:.1e} times; you predicted {predicted_ratio_of_largest}")

# %% nbgrader={"grade": true, "grade_id": "lab01-format_limits", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.4, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-format_limits", globals())
### END HIDDEN TESTS

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab01-relative_spacing", "locked": true, "schema_version": 3, "solution": false, "task": false}
lab01.show_relative_spacing()

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-relative_spacing-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** A lower curve means more precision, a wider one more range. Each curve is flat over
# the normal numbers: the *relative* gap is the same at every power of two. On the left, the subnormal numbers
# lose precision one bit at a time. fp16 spends its 2 bytes on precision, bf16 on range.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-decode_e4m3-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.5 A quarter of the memory: fp8 (core, 1 point, 5 minutes)
#
# An IEEE-like format with 4 exponent bits would spend 16 of its 256 patterns on infinity and NaN. **E4M3**,
# as the Open Compute Project (OCP) defines it, spends two: only `S.1111.111` is NaN, and there is no
# infinity. The other patterns with exponent field 15 are numbers.
#
# Write `decode_e4m3(bits)`:
# - `bits` is 0 to 255: 1 sign bit, 4 exponent bits with bias 7, and 3 mantissa bits. Return a float.
# - Exponent field 0 is as in fp32, scaled by $2^{-6}$. Keep $-0.0$.
# - The rules of 1.3 apply.
# *Points:* all or nothing.
#
# *Example:* `0b0_1000_100` has $E = 8$ and mantissa 4: $(1 + 4/8) \cdot 2^{8-7} = 3.0$.
#
# **Predict first.** What is the largest finite number?

# %%
predicted_largest_e4m3 = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab01-decode_e4m3-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decode_e4m3(bits: int) -> float:
    """Return the value of an FP8 E4M3 number (OCP)."""
    exponent, mantissa = bits >> 3 & 0xF, bits & 0x7
    ### BEGIN SOLUTION
    sign = -1.0 if bits & 0x80 else 1.0
    if exponent == 15 and mantissa == 7:
        return math.nan
    if exponent == 0:
        return sign * mantissa / 8 * 2.0**-6
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-decode_e4m3-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.5, a quarter of the memory: fp8
self_check(
    decode_e4m3,
    [
        Case((bits,), value, hint, label=f"0b{bits:08b}: {value}")
        for bits, value, hint in [
            (0b0_1000_100, 3.0, "1.5 * 2**1: is the bias 7?"),
            (0b1_0111_000, -1.0, "bit 7 is the sign"),
            (0b0_0000_001, 2.0**-9, "exponent field 0: no leading 1, and 2**-6"),
            (0b1_0000_000, -0.0, "minus zero: -1.0 * 0 is -0.0, but the integer -1 * 0 is 0"),
            (0b0_1111_000, 256.0, "exponent field 15 holds numbers too; there is no infinity"),
            (0b0_1111_111, math.nan, "S.1111.111 is NaN"),
            (0b1_1111_111, math.nan, "S.1111.111 is NaN, with either sign"),
        ]
    ]
    + [
        Case(
            (decode_e4m3,),
            [],
            "the rules of 1.3 forbid these, and grading checks your code for them",
            label="no tool that the rules forbid",
            function=lab01.not_allowed,
        )
    ],
)
if predicted(predicted_largest_e4m3, question="what is the largest finite number?"):
    largest = max(value for value in map(decode_e4m3, range(256)) if not math.isnan(value))
    print(f"largest number in E4M3: {largest}; you predicted {predicted_largest_e4m3}")
    print(f"with patterns set aside for infinity, it would be {format_limits(4, 3)['max']}")

# %% nbgrader={"grade": true, "grade_id": "lab01-decode_e4m3", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.5, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-decode_e4m3", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-to_bf16-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.6 Half the memory: bf16 (core, 3 points, 13 minutes)
#
# bf16 is the upper half of fp32: the same sign and 8 exponent bits, 7 bits of fraction instead of 23. But
# cutting off the lower 16 bits always rounds toward zero. Hardware rounds to **nearest, ties to even**: it
# takes the nearer neighbour, and from exactly in the middle the one whose last bit is 0, so that ties go up as
# often as down.
#
# Write `to_bf16(x)`:
# - `x` is a float32 array of any shape, possibly empty. Return the bf16 patterns in the same shape, as
#   `uint16` (or wider integers). Leave `x` unchanged.
# - Don't use a Python loop, a comprehension, `map`, or `np.vectorize`.
# - Numbers that round past bf16's largest become infinity, and infinity stays infinity. NaN stays NaN:
#   cutting bits off can turn it into infinity, and adding to them can wrap around, so finish with
#   `np.where(np.isnan(x), 0x7FC0, patterns)`.
# - The rules of 1.3 apply. `x.view(np.uint32)` shows the bits of `x`. It shares memory with `x`, and
#   uint32 wraps around without a warning.
#
# *Points:* nearest 1, ties to even 1, NaN and infinity 1.
#
# *Example:* $1 + 2^{-8}$ = `0x3F80_8000` is halfway between `0x3F80` and `0x3F81`. The answer is `0x3F80`,
# which is even.
#
# **Predict first.** What is bf16's largest relative error, in percent?

# %%
predicted_error_percent = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab01-to_bf16-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def to_bf16(x: np.ndarray) -> np.ndarray:
    """Return the bf16 patterns of a float32 array, nearest even, as integers in the same shape."""
    ### BEGIN SOLUTION
    bits = x.view(np.uint32)
    last = bits >> 16 & 1  # the last bit that stays: ties go up only where it is 1
    rounded_up = bits + 0x7FFF + last
    return np.where(np.isnan(x), 0x7FC0, rounded_up >> 16).astype(np.uint16)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-to_bf16-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.6, half the memory: bf16
def bf16_of(pattern):
    """Convert one fp32 number, given as its bits; every NaN is "NaN"."""
    x = np.array([pattern], np.uint32)
    bits = int(np.asarray(to_bf16(x.view(np.float32)))[0])
    if x[0] != pattern:
        return f"x is now 0x{x[0]:08X}: leave it unchanged"
    if not 0 <= bits <= 65535:
        return f"{bits}: patterns are 0 to 65535"
    return "NaN" if bits & 0x7FFF > 0x7F80 else f"0x{bits:04X}"


self_check(
    bf16_of,
    [
        Case((np.ones(shape, np.float32),), np.full(shape, 0x3F80), hint, function=to_bf16)
        for shape, hint in [
            ((2, 3), "keep the shape"),
            ((2, 0, 3), "an empty array stays empty"),
            ((), "a single number, of shape (), is an array too"),
        ]
    ]
    + [
        Case(
            (np.array([[1, 2, 4], [8, 16, 32]], np.float32).T,),
            [[0x3F80, 0x4100], [0x4000, 0x4180], [0x4080, 0x4200]],
            "a transposed array is laid out in memory in another order",
            function=to_bf16,
        )
    ]
    + [
        Case((pattern,), result, hint, label=f"0x{pattern:08X} becomes {result}")
        for pattern, result, hint in [
            (0x3F800000, "0x3F80", "1.0 is exact"),
            (0x3F807FFF, "0x3F80", "just below the middle"),
            (0x3F808001, "0x3F81", "just above the middle"),
            (0x3F808000, "0x3F80", "a tie, and the lower neighbour is even"),
            (0x3F818000, "0x3F82", "a tie, and the upper neighbour is even"),
            (0x7F7FFFFF, "0x7F80", "numbers that round past bf16's largest become infinity"),
            (0x80018000, "0x8002", "signs and subnormal numbers round the same way"),
            (0x80000000, "0x8000", "minus zero keeps its sign"),
            (0xFF800000, "0xFF80", "infinity stays infinity"),
            (0x7FFFFFFF, "NaN", "NaN stays NaN: adding to its bits wraps around"),
            (0x7F800001, "NaN", "NaN stays NaN: its upper half alone is infinity"),
            (0xFFFFFFFF, "NaN", "NaN stays NaN, with either sign"),
        ]
    ]
    + [
        Case((to_bf16,), [], hint, label=label, function=function)
        for label, function, hint in [
            ("no tool that the rules forbid", lab01.not_allowed, "see the rules of 1.3"),
            ("no Python loop", lab01.python_loops, "one numpy operation works on all elements"),
        ]
    ],
    equal=whole(),
)
if predicted(predicted_error_percent, question="what is the largest relative error in percent?"):
    weights = np.random.default_rng(0).normal(0, 0.02, 1_000_000).astype(np.float32)
    back = (np.asarray(to_bf16(weights)).astype(np.uint32) << 16).view(np.float32)
    error = np.max(np.abs(back - weights) / np.abs(weights))
    print(f"largest relative error {error:.2%}; you predicted {predicted_error_percent}%")

# %% nbgrader={"grade": true, "grade_id": "lab01-to_bf16", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.6, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-to_bf16", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-update_lost-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.7 The lost update (core, 1 point, 8 minutes)
#
# Training adds updates to weights, and rounds each sum. From 1 to 2, bf16's numbers are $2^{-7}$ apart. Add
# less than half of that to one of them, and the sum rounds back, now and in all later steps.
#
# `rounded(x, exponent_bits, mantissa_bits)` returns the nearest number in such a format (1.4), ties to even,
# or infinity past the largest.
#
# Write `update_lost(param, update, exponent_bits, mantissa_bits)`:
# - Round `param` and `update` to the format, add them, and round the sum. Return True if the result equals
#   the rounded `param`, False if it moved.
# - Inputs are finite; formats have at most 23 mantissa bits.
# *Points:* all or nothing.
#
# *Example:* in fp16, $1 + 2^{-11}$ is a tie that goes back to 1: lost. But $1 - 2^{-11}$ is an fp16 number:
# below a power of two, the gap is half as wide.
#
# **Predict first.** In bf16, normally distributed weights with a standard deviation of 0.02 get updates of
# 0.00001. What share of them doesn't change at all?

# %%
predicted_share_lost = None  # your prediction, between 0 and 1


# %% nbgrader={"grade": false, "grade_id": "lab01-update_lost-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def update_lost(param: float, update: float, exponent_bits: int, mantissa_bits: int) -> bool:
    """Tell whether param + update rounds back to param in the format."""
    ### BEGIN SOLUTION
    stored = rounded(param, exponent_bits, mantissa_bits)
    moved = stored + rounded(update, exponent_bits, mantissa_bits)
    return rounded(moved, exponent_bits, mantissa_bits) == stored
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-update_lost-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.7, the lost update
self_check(
    update_lost,
    [
        Case((1.0, 2.0**-11, 5, 10), True, "a tie goes back to the even number"),
        Case((1.0 + 2.0**-10, -(2.0**-11), 5, 10), False, "a tie moves on from an odd number"),
        Case((-1.0, 2.0**-11, 5, 10), False, "below a power of two the gap is half as wide"),
        Case((1.0, 2.0**-9, 8, 7), True, "a quarter of bf16's gap"),
        Case((1.0, -(2.0**-11), 5, 10), False, "the example: the update's sign counts"),
        Case((1.0, 2.0**-20, 8, 23), False, "fp32's gap is far smaller: compare with =="),
        Case((1.0, 3 * 2.0**-6, 4, 3), True, "less than half of fp8's gap"),
        Case((0.1, 0.0, 5, 10), True, "compare with the rounded param"),
        Case((1.00073, -0.0004, 5, 10), True, "round param first, then add"),
        Case((1.0, 2.0**-11 + 2.0**-23, 5, 10), True, "round update first: then it is a tie"),
        Case((2.0**-24, 2.0**-26, 5, 10), True, "subnormal numbers have a gap of 2**-24"),
        Case((2.0**-24, 2.0**-24, 5, 10), False, "subnormal numbers aren't zero"),
        Case((65504.0, 16.0, 5, 10), False, "the sum moves to infinity"),
        Case((1e6, 1e4, 5, 10), True, "infinity stays infinity"),
        Case((1e6, 1e6, 5, 10), True, "infinity plus infinity is still infinity"),
        Case((1e6, 1e4, 8, 7), False, "bf16 has more range: use the format you are given"),
        Case((1e6, 1e4, 8, 10), False, "any format with 8 exponent bits has more range"),
        Case((1.0, 2.0**-9, 8, 10), False, "10 mantissa bits: the gap above 1 is 2**-10"),
        Case((1e60, 1e58, 9, 12), False, "9 exponent bits have more range still"),
        Case((1.0, 2.0**-16, 9, 16), False, "16 mantissa bits: the gap above 1 is 2**-16"),
        Case((0.0, 2.0**-26, 5, 10), True, "less than half of the smallest number"),
    ],
)
if predicted(predicted_share_lost, question="what share of the updates is lost in bf16?"):
    weights = np.random.default_rng(0).normal(0, 0.02, 5000).tolist()
    for name, e, m in [("fp16", 5, 10), ("bf16", 8, 7), ("fp32", 8, 23)]:
        share = sum(update_lost(weight, 1e-5, e, m) for weight in weights) / len(weights)
        print(f"{name}: {share:.1%} of the updates are lost")
    print(f"you predicted a share of {predicted_share_lost} for bf16")

# %% nbgrader={"grade": true, "grade_id": "lab01-update_lost", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.7, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-update_lost", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-update_lost-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the numbers.** From $2^{-8}$ (about 0.004) on, half of bf16's gap is more than 0.00001. Of these
# weights, 86% are that large.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-find_the_leak-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.8 Find the leak (core, 2 points, 8 minutes)
#
# `wasteful_halves` keeps 16-bit copies of fp32 tensors: it views each number as two 16-bit integers (a *view*
# is another look at the same memory) and keeps the second, the upper half. The values are correct (truncated
# bf16), but the memory use isn't.
#
# **Predict first.** 16 tensors take 1 MiB each in fp32. How many MiB should be live when only their halves
# are left?

# %%
predicted_halves_mib = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab01-wasteful_halves", "locked": true, "schema_version": 3, "solution": false, "task": false}
def wasteful_halves(load, count):
    """Return the upper halves of tensors 0 to count - 1."""
    kept = []
    for i in range(count):
        x = load(i)
        kept.append(x.view(torch.int16)[1::2])
    return kept


# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab01-leak_measured", "locked": true, "schema_version": 3, "solution": false, "task": false}
# How much memory wasteful_halves takes
if predicted(predicted_halves_mib, question="how many MiB should the halves take?"):
    print(f"16 halves of 0.5 MiB are 8 MiB; you predicted {predicted_halves_mib} MiB")
    print(f"wasteful_halves takes {lab01.halves_rise(wasteful_halves) / 2**20:.1f} MiB at its peak")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-find_the_leak-rules", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Write `upper_halves(load, count)`, which returns the same halves without the waste:
# - `load(i)` makes tensor $i$ anew, one-dimensional and float32; all have the same length. Call it
#   once per tensor, in order.
# - At its peak, your function may hold the halves (2 bytes per number) and three whole tensors: 11 MiB here.
# *Points:* all or nothing.

# %% nbgrader={"grade": false, "grade_id": "lab01-find_the_leak-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
from collections.abc import Callable


def upper_halves(load: Callable[[int], torch.Tensor], count: int) -> list[torch.Tensor]:
    """Return the upper halves of tensors 0 to count - 1, and keep nothing else alive."""
    ### BEGIN SOLUTION
    return [load(i).view(torch.int16)[1::2].clone() for i in range(count)]
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-find_the_leak-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.8, find the leak
self_check(
    lab01.halves_of_three,
    [
        Case(
            (upper_halves,),
            lab01.halves_of_three(wasteful_halves),
            "return the same int16 numbers: cut off, not rounded",
            label="three small tensors give the same halves",
        ),
        Case(
            (upper_halves,),
            "within the 11.0 MiB allowed",
            "something still keeps whole tensors alive: look at untyped_storage().nbytes()",
            label="the peak of 16 tensors of 1 MiB",
            function=lab01.halves_peak,
        ),
    ],
)

# %% nbgrader={"grade": true, "grade_id": "lab01-find_the_leak", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.8, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-find_the_leak", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.9 In your own words (core, 2 points, 6 minutes)
#
# A friend trains in bf16 and adds each update straight to the weights. The loss falls, then levels off,
# though the gradients aren't zero. In one sentence each: what happens to the updates (1 point); why would
# fp16 have lost fewer of them (half a point); and what could your friend keep in fp32, at how many extra
# bytes per weight (half a point)?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab01-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# An update below half the gap around its weight rounds away; bf16's gaps are 0.4 to 0.8% of the
# weight. fp16 has 3 more mantissa bits, so its gaps are 8 times smaller (it pays with range). An
# fp32 copy of the weights, to which the updates are added, costs 4 more bytes per weight.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-core-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - Exponent bits buy range, mantissa bits buy precision. bf16 is fp32 rounded to its upper half.
# - The gap doubles at every power of two, so the relative gap stays about the same.
# - `param += update` may change nothing at all. That's why lab 7 keeps an fp32 copy of the weights.
# - A view, however small, keeps its whole storage alive.
#
# The core ends here. The stretch is about rounding.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-encode_fp32-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.10 From a number to bits: fp32 (stretch, 4 points, 18 minutes)
#
# Round each number to the nearest one in fp32, ties to even (1.6). For 0.1:
#
# | step | how | for 0.1 |
# |---|---|---|
# | find the power of two below | `math.frexp(x)` is $(r, k)$ with $x = r \cdot 2^k$, $0.5 \le \lvert r \rvert < 1$ | $k = -3$: it lies in $[2^{-4}, 2^{-3})$ |
# | count in gaps | the gap there is $2^{-4-23}$; `math.ldexp` scales exactly | 13421772.8 gaps |
# | round | Python's `round` takes ties to even | 13421773 |
# | build the pattern | the first $2^{23}$ gaps are the leading 1; $E = -4 + 127$ | $E = 123$, $F = 5033165$: `0x3DCCCCCD` |
#
# Positive patterns have the same order as their values, so a count that rounds up to $2^{24}$ carries into
# the exponent.
#
# Write `encode_fp32(x)`:
# - `x` is any Python float. Return the pattern of the nearest fp32 number as an integer.
# - From $2^{128} - 2^{103}$ on, half a gap above the largest number, the answer is infinity.
# - Below $2^{-126}$ the gap stays $2^{-149}$. Magnitudes up to $2^{-150}$ (a tie) round to zero.
# - Handle 0.0, $-0.0$, the infinities, and NaN (any NaN pattern) separately.
# - The rules of 1.3 apply.
#
# *Points:* exact 1, inexact and ties 1, overflow and underflow 1, zeros, infinity, and NaN 1.
#
# **Predict first.** Is the relative error of fp32's 0.1 closer to 1e-4, 1e-8, or 1e-12?

# %%
predicted_error_of_a_tenth = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab01-encode_fp32-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def encode_fp32(x: float) -> int:
    """Return the 32 bits of the fp32 number nearest to x, ties to even."""
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    exponent = max(math.frexp(x)[1] - 1, -126)  # the gap around x is 2**(exponent - 23)
    ### BEGIN SOLUTION
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    if exponent > 127:
        return sign | 0x7F800000
    significand = round(math.ldexp(abs(x), 23 - exponent))  # in gaps, up to 2**24
    # The leading 1 (2**23) adds 1 to the exponent field, and so does a carry to 2**24.
    return sign | ((exponent + 126 << 23) + significand)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-encode_fp32-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.10, from a number to bits: fp32
def pattern_of(x):
    """Return the pattern in hexadecimal; every NaN is "NaN"."""
    bits = operator.index(encode_fp32(x))  # rejects floats
    if not 0 <= bits < 2**32:
        return f"{bits}: a pattern has 32 bits"
    return "NaN" if bits & 0x7FFFFFFF > 0x7F800000 else f"0x{bits:08X}"


self_check(
    pattern_of,
    [
        Case((0.265625,), "0x3E880000", "an exact value"),
        Case((-3.140625,), "0xC0490000", "bit 31 is the sign"),
        Case((0.1,), "0x3DCCCCCD", "the example"),
        Case((1 + 2**-24,), "0x3F800000", "a tie: the even pattern is the lower one"),
        Case((1 + 3 * 2**-24,), "0x3F800002", "a tie: the even pattern is the upper one"),
        Case((-1 - 3 * 2**-24,), "0xBF800002", "negative numbers round the same way"),
        Case((1 + 2**-24 + 2**-40,), "0x3F800001", "more than half a gap above 1.0"),
        Case(
            (2 - 2**-25,), "0x40000000", "the count rounds up to 2**24: + carries into the exponent"
        ),
        Case((-(2.0**-149),), "0x80000001", "the smallest subnormal number, and its sign"),
        Case((0.75 * 2.0**-149,), "0x00000001", "more than half of the smallest number"),
        Case((2.0**-150,), "0x00000000", "a tie between 0 and the smallest number"),
        Case((5e-324,), "0x00000000", "the smallest double, far below fp32's smallest number"),
        Case((-(2.0**-150),), "0x80000000", "a number that rounds to zero keeps its sign"),
        Case((3 * 2.0**-150,), "0x00000002", "a subnormal tie: the even pattern is the upper one"),
        Case((3 * 2.0**-150 - 2.0**-180,), "0x00000001", "just below that tie: round only once"),
        Case((2.0**-126 - 2.0**-151,), "0x00800000", "rounds up to the smallest normal number"),
        Case((2.0**128 - 2.0**104 + 2.0**102,), "0x7F7FFFFF", "a quarter gap above the largest"),
        Case((2.0**128 - 2.0**103,), "0x7F800000", "half a gap above the largest: infinity"),
        Case((-1.5 * 2.0**128,), "0xFF800000", "below the lowest finite number"),
        Case((math.inf,), "0x7F800000", "infinity has exponent field 255 and fraction 0"),
        Case((0.0,), "0x00000000", "zero has no leading 1 to look for"),
        Case((-0.0,), "0x80000000", "-0.0 has its own pattern, though -0.0 == 0.0"),
        Case(
            (math.inf - math.inf,),
            "NaN",
            "exponent field 255 and any nonzero fraction; use math.isnan(x)",
        ),
        Case(
            (encode_fp32,),
            [],
            "the rules of 1.3 forbid these, and grading checks your code for them",
            label="no tool that the rules forbid",
            function=lab01.not_allowed,
        ),
    ],
)
if predicted(predicted_error_of_a_tenth, question="how far off is fp32's 0.1?"):
    error = abs(decode_fp32(int(encode_fp32(0.1))) - 0.1) / 0.1
    print(f"relative error {error:.1e}; you predicted {predicted_error_of_a_tenth}")

# %% nbgrader={"grade": true, "grade_id": "lab01-encode_fp32", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.10, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-encode_fp32", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-stall_value-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.11 When a sum stops growing (stretch, 3 points, 14 minutes)
#
# The gap grows with a sum; the step you add doesn't. At some point it rounds away, and the sum **stalls**.
#
# **Predict first.** Add 0.01 a thousand times in fp16. The exact sum is 10. What do you get?

# %%
predicted_sum_in_fp16 = None  # your prediction, a number

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab01-stalling_sum", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_sum_in_fp16, question="what is a thousand times 0.01 in fp16?"):
    lab01.show_stalling_sum()
    print(f"you predicted {predicted_sum_in_fp16} after 1000 additions")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-stalling_sum-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** Between two powers of two, each step is rounded to the same multiple of the gap:
# three gaps (0.0117) from 4 to 8, one (0.0078) from 8 to 16, none at 32.
#
# **Look at the table.** Compare each step with its last gap. What is the rule?
#
# Write `stall_value(step, exponent_bits, mantissa_bits)`:
# - Start with $s = 0$. Add `step` exactly, round the sum to the format, ties to even, and repeat. Return the
#   first $s$ that an addition doesn't change. `step` is positive and stays exact; only sums are rounded.
# - The stub handles sums that never start (0.0) or pass the largest number (`math.inf`). Compute `stall` as
#   if the format had no such limits.
# - Use your rule instead of adding: in fp32, steps of 0.01 take millions of additions.
#
# *Example:* fp16's gap is $2^{-6} \approx 0.016$ up to 32, and $2^{-5} \approx 0.031$ from there on. The step
# 0.01 is more than half of the first gap but less than half of the second, so the answer is 32.0.
#
# *Hint:* the sum passes through every power of two. `math.frexp` is exact where `math.log2` is rounded.
#
# *Points:* all or nothing.


# %% nbgrader={"grade": false, "grade_id": "lab01-stall_value-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stall_value(step: float, exponent_bits: int, mantissa_bits: int) -> float:
    """Return where a sum of equal steps stops growing."""
    limits = format_limits(exponent_bits, mantissa_bits)
    if step <= limits["min_subnormal"] / 2:
        return 0.0  # a tie goes to 0, which is even
    ### BEGIN SOLUTION
    # From 2**k on the gap is 2**(k - m). The sum reaches each power of two exactly while the gap
    # below it is less than twice the step; it stalls at the first from which the gap is at least
    # twice the step.
    fraction, k = math.frexp(step)  # step <= 2**k
    if fraction == 0.5:
        k -= 1  # step is a power of two: the tie goes back to 2**k, which is even
    stall = math.ldexp(1.0, k + mantissa_bits + 1)
    ### END SOLUTION
    return stall if stall <= limits["max"] else math.inf


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab01-stall_value-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 1.11, when a sum stops growing
self_check(
    stall_value,
    [
        Case((0.01, 5, 10), 32.0, "the gap is 2**-5 from 32 on"),
        Case((1.0, 5, 10), 2048.0, "2048 + 1 is a tie, and 2048 is even"),
        Case((0.01, 8, 7), 4.0, "bf16 has 3 bits fewer, so it stalls at an eighth of fp16's sum"),
        Case((0.01, 8, 23), 262144.0, "fp32 stalls too, but later"),
        Case((2.0**-25, 5, 10), 0.0, "half the smallest number is a tie, and 0 is even"),
        Case((2.0**-24, 5, 10), 2.0**-13, "up to 2**-13 the gap is the smallest number"),
        Case((1.5 * 2.0**-25, 5, 10), 2.0**-13, "more than half of the smallest number"),
        Case((16.0, 5, 10), 32768.0, "a tie at the largest power of two that fp16 has"),
        Case((17.0, 5, 10), math.inf, "more than half of the largest gap: it passes 65504"),
        Case((17.0, 8, 10), 65536.0, "8 exponent bits have more range"),
        Case((2.0**130, 9, 10), 2.0**141, "9 exponent bits have more range still"),
        Case((1e5, 5, 10), math.inf, "the first sum already passes 65504"),
        Case((2.0**-6 + 2.0**-58, 5, 10), 64.0, "just above half of the gap from 32 on"),
        Case((0.3, 5, 10), float(lab01.float16_sums(0.3, 5000)[-1]), "0.3 in fp16, simulated"),
    ],
)

# %% nbgrader={"grade": true, "grade_id": "lab01-stall_value", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.11, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-stall_value", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-careful_sum-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 1.12 A careful sum (stretch, 2 points, 13 minutes)
#
# Suppose you can only add in float16, and you compute $t = s + y$. The sum should gain $y$, but it really
# gains $t - s$. Two more additions tell you by how much that is too much: subtract the difference from the
# next element *before* you add it.
#
# Write `careful_sum(x, add)`:
# - `x` is a one-dimensional float16 array with $\sum \lvert x_i \rvert < 65504$. Leave it unchanged.
# - `add(a, b)` is the only way to add: it adds in float16, counts, and returns a float. Each argument is an
#   element of `x`, a number that `add` returned, the negative of one, or 0. Comparing and sorting are free.
# - Return a number that `add` returned, or 0.0 if `x` is empty. Call `add` at most 4 times per element.
# - The error must be at most $4 \cdot 2^{-11} \sum \lvert x_i \rvert + 2^{-25}$ on **every** array of up to
#   1000 elements. All or nothing.
#
# *Example:* `add(2048, 1)` is 2048.0, a tie. `add(2048.0, -2048)` is 0.0: the sum gained nothing. `add(0.0,
# -1)` is $-1.0$: that is 1 too little, which the next element makes up for.
#
# **Predict first.** You add a thousand elements of 20.0 with plain addition. What is the sum?

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
# Self-check of 1.12, a careful sum
def verdict_on(numbers):
    """Return "right", or what is wrong with the sum of these numbers."""
    x = np.array(numbers, np.float16)
    add = Float16Adder(x)
    got = careful_sum(x, add)
    if x.tolist() != np.array(numbers, np.float16).tolist():
        return "x was changed"
    error = abs(got - math.fsum(x.tolist()))
    if not error <= 4 * 2.0**-11 * math.fsum(np.abs(x).tolist()) + 2.0**-25:
        return f"off by {error:.3g}"
    if add.calls > 4 * len(x):
        return f"{add.calls} calls of add for {len(x)} elements"
    return "right" if not len(x) or got in add.log().sum(axis=1) else "not a result of add"


random_numbers = np.random.default_rng(1).normal(0, 1, 1000).tolist()
tree_numbers = [*(0.498 / 2**k for k in range(8, -1, -1) for _ in range(2**k)), 1024]
said = {
    "x was changed": "work on a copy, and leave x unchanged",
    "not a result of add": "add only with add: return a number that it returned",
}
lost = "give what an addition lost to the next element: test the sign with add(2048, 1)"
self_check(
    verdict_on,
    [
        Case((numbers,), "right", hint, label=name, wrong=said)
        for name, numbers, hint in [
            ("a thousand times 20.0", [20.0] * 1000, lost),
            ("a thousand times 0.3", [0.3] * 1000, lost),
            ("random numbers", random_numbers, lost),
            ("2048, where plain addition stalls, then ones", [2048.0] + [1.0] * 500, lost),
            ("small numbers that pairwise addition loses", tree_numbers, lost),
            ("one element", [1.5], "add(1.5, 0) is a number that add returned"),
            ("an empty array", [], "return 0.0"),
        ]
    ],
)
if predicted(predicted_plain_sum, question="what is the plain sum of a thousand times 20.0?"):
    plain = float(lab01.float16_sums(20.0, 1000)[-1])
    print(f"plain {plain}, exact 20000.0; you predicted {predicted_plain_sum}")

# %% nbgrader={"grade": true, "grade_id": "lab01-careful_sum", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 1.12, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab01-careful_sum", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab01-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What the stretch adds
#
# - In fp16, steps of 0.01 stall at 32; a compensated sum (Kahan, 1965) carries on.
