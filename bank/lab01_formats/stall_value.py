# %% right: formula
"""By formula: the first power of two that is at least step * 2**(m + 1)."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    if step <= smallest / 2:
        return 0.0
    power = 2.0 ** math.ceil(math.log2(step))
    while power / 2 >= step:
        power /= 2
    while power < step:
        power *= 2
    stall = power * 2.0 ** (m + 1)
    return stall if stall <= largest else math.inf


# %% right: numpy
"""The exponent by numpy's frexp; returns numpy scalars."""
import numpy as np


def stall_value(step, exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    mantissa, exponent = np.frexp(np.float64(step))
    if step <= np.ldexp(1.0, -bias - mantissa_bits):
        return np.float64(0)
    exponent = exponent - (mantissa == 0.5) + mantissa_bits + 1
    return np.ldexp(1.0, exponent) if exponent <= bias else np.inf


# %% right: simulation
"""Simulates exactly with fractions; where a format has many numbers, jumps over equal steps."""
import math
from fractions import Fraction


def stall_value(step, exponent_bits, mantissa_bits):
    lowest = 2 - 2 ** (exponent_bits - 1)
    top = Fraction(2) ** (2 ** (exponent_bits - 1))
    exact = Fraction(step)

    def gap(x):
        k = lowest
        if x >= Fraction(2) ** lowest:
            k = math.frexp(float(x))[1] - 1
            if x < Fraction(2) ** k:
                k -= 1
        return Fraction(2) ** (k - mantissa_bits)

    def rounded(x):
        return round(x / gap(x)) * gap(x)

    s = Fraction(0)
    while True:
        t = rounded(s + exact)
        if t == s:
            return float(s)
        if t >= top:
            return math.inf
        end = gap(t) * 2 ** (mantissa_bits + 1)
        u = rounded(t + exact)
        if u < end and u - t == t - s:
            t += max(int((end - exact - t) / (t - s)), 0) * (t - s)
        s = t


# %% right: walk
"""Walks over the powers of two until the gap is twice the step."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    if step * 2 <= smallest:
        return 0.0
    s, gap = 2.0 ** (1 - bias), smallest
    while gap < 2 * step:
        s, gap = 2 * s, 2 * gap
        if s > largest:
            return math.inf
    return s


# %% wrong: always_float16
"""Simulates in float16 for every format."""
import numpy as np


def stall_value(step, e, m):
    s = np.float16(0)
    with np.errstate(over="ignore"):
        for _ in range(5000):
            t = np.float16(float(s) + step)
            if t == s:
                break
            s = t
    return float(s)


# %% wrong: formula_without_limits
"""The formula without the smallest and the largest number."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    k = math.frexp(step * 2.0 ** (m + 1))[1]
    power = 2.0**k
    return power / 2 if power / 2 == step * 2.0 ** (m + 1) else power


# %% wrong: no_overflow
"""Walks on past the largest number."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    if step <= smallest / 2:
        return 0.0
    s, gap = 2.0 ** (1 - bias), smallest
    while gap < 2 * step:
        s, gap = 2 * s, 2 * gap
    return s


# %% wrong: no_underflow
"""The formula without the smallest number."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    power = 2.0 ** math.ceil(math.log2(step * 2 ** (m + 1)))
    while power / 2 >= step * 2 ** (m + 1):
        power /= 2
    while power < step * 2 ** (m + 1):
        power *= 2
    return power if power <= largest else math.inf


# %% wrong: not_a_power_of_two
"""Solves gap = 2 * step as if the gap grew evenly."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    return step * 2 ** (m + 1)


# %% wrong: overflows_early
"""Takes the largest power of two that the format has for an overflow."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    smallest = 2.0 ** (1 - bias - m)
    if step <= smallest / 2:
        return 0.0
    s, gap = 2.0 ** (1 - bias), smallest
    while gap < 2 * step:
        s, gap = 2 * s, 2 * gap
    return s if s < 2.0**bias else math.inf


# %% wrong: stays_at_max
"""Stays at the largest number instead of infinity."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    if step <= smallest / 2:
        return 0.0
    s, gap = 2.0 ** (1 - bias), smallest
    while gap < 2 * step:
        s, gap = 2 * s, 2 * gap
    return min(s, largest)


# %% wrong: step_below_gap
"""Stops where step < gap."""

def stall_value(step, exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    lowest = 1 - bias
    if step < 2.0 ** (lowest - mantissa_bits):
        return 0.0
    exponent = lowest
    while step >= 2.0 ** (exponent - mantissa_bits):
        exponent += 1
    return 2.0**exponent if exponent <= bias else float("inf")


# %% wrong: step_rounded
"""Rounds the step to the format before it adds."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    lowest = 1 - bias
    exponent = max(math.frexp(step)[1] - 1, lowest) - m
    step = round(step / 2.0**exponent) * 2.0**exponent
    if step == 0:
        return 0.0
    if step > (2 - 2.0**-m) * 2.0**bias:
        return math.inf
    s, gap = 2.0**lowest, 2.0 ** (lowest - m)
    while gap < 2 * step:
        s, gap = 2 * s, 2 * gap
        if s > (2 - 2.0**-m) * 2.0**bias:
            return math.inf
    return s


# %% wrong: subnormals_flushed
"""Any step below the smallest normal number is lost to it."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    if step < 2.0 ** (1 - bias):
        return 0.0
    s, gap = 2.0 ** (1 - bias), smallest
    while gap < 2 * step:
        s, gap = 2 * s, 2 * gap
        if s > largest:
            return math.inf
    return s


# %% wrong: ties_move_on
"""Lets a step of half a gap move on."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    if step <= smallest / 2:
        return 0.0
    s, gap = 2.0 ** (1 - bias), smallest
    while gap <= 2 * step:
        s, gap = 2 * s, 2 * gap
        if s > largest:
            return math.inf
    return s


# %% wrong: whole_gap
"""Stops where the gap is larger than the step, not than twice the step."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    if step <= smallest / 2:
        return 0.0
    power = 2.0 ** (1 - bias)
    while power > step * 2**m:
        power /= 2
    while power <= step * 2**m:
        power *= 2
    return power if power <= largest else math.inf


# %% wrong: whole_gap_underflow
"""Any step below the smallest number is lost to it."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    if step < smallest:
        return 0.0
    s, gap = 2.0 ** (1 - bias), smallest
    while gap < 2 * step:
        s, gap = 2 * s, 2 * gap
        if s > largest:
            return math.inf
    return s


# %% wrong: log2_is_rounded
"""math.log2 of a step just above a power of two gives that power's exponent."""
import math


def stall_value(step, exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    if step <= 2.0 ** (1 - bias) * 2.0**-mantissa_bits / 2:
        return 0.0
    stall = 2.0 ** (math.ceil(math.log2(step)) + mantissa_bits + 1)
    return stall if stall <= (2 - 2.0**-mantissa_bits) * 2.0**bias else math.inf


# %% wrong: large_step_returned
"""Returns a step that is past the largest number itself."""
import math


def stall_value(step, exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    if step <= 2.0 ** (-bias - mantissa_bits):
        return 0.0
    largest = (2 - 2.0**-mantissa_bits) * 2.0**bias
    if step > largest:
        return step
    root, power = math.frexp(step * 2.0 ** (mantissa_bits + 1))
    stall = math.ldexp(1.0, power - (root == 0.5))
    return stall if stall <= largest else math.inf


# %% wrong: eight_exponent_bits
"""Takes more than 8 exponent bits for 8."""

import math


def stall_value(step, exponent_bits, mantissa_bits):
    bias = 2 ** (min(exponent_bits, 8) - 1) - 1
    if step <= 2.0 ** (1 - bias - mantissa_bits) / 2:
        return 0.0
    fraction, k = math.frexp(step)
    stall = math.ldexp(1.0, k - (fraction == 0.5) + mantissa_bits + 1)
    return stall if stall <= (2 - 2.0**-mantissa_bits) * 2.0**bias else math.inf


# %% wrong: kept_without_the_exponent
"""Keeps results by step and mantissa bits, whatever the exponent bits."""
import math

known = {}


def stall_value(step, exponent_bits, mantissa_bits):
    key = step, mantissa_bits
    if key not in known:
        bias = 2 ** (exponent_bits - 1) - 1
        fraction, k = math.frexp(step)
        stall = math.ldexp(1.0, k - (fraction == 0.5) + mantissa_bits + 1)
        if step <= 2.0 ** (1 - bias - mantissa_bits) / 2:
            stall = 0.0
        known[key] = stall if stall <= (2 - 2.0**-mantissa_bits) * 2.0**bias else math.inf
    return known[key]
