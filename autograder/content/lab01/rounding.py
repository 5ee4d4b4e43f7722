"""Exact rounding to any small binary format, by rational numbers.

Formats are those of IEEE 754 with e exponent bits and m mantissa bits, as in `format_limits(e, m)`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

__all__ = ["floor_log2", "gap", "largest", "power_of_two", "rounded"]


@lru_cache
def power_of_two(exponent: int) -> Fraction:
    """2**exponent, exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def floor_log2(x: Fraction) -> int:
    """The exponent of the largest power of two up to x; x > 0."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if x >= power_of_two(guess) else guess - 1


@lru_cache
def largest(e: int, m: int) -> Fraction:
    """The largest finite number."""
    return (2 - power_of_two(-m)) * power_of_two((1 << e - 1) - 1)


def gap(x: Fraction, e: int, m: int) -> Fraction:
    """The gap between the two numbers around x; above x, if x is a power of two."""
    lowest = 2 - (1 << e - 1)
    return power_of_two((max(floor_log2(abs(x)), lowest) if x else lowest) - m)


@lru_cache
def rounded(x: Fraction, e: int, m: int) -> Fraction | float:
    """The nearest number of the format, ties to even; plus or minus inf if it is too large."""
    step = gap(x, e, m)
    nearest = round(x / step) * step  # Python rounds a Fraction's ties to even
    return nearest if abs(nearest) <= largest(e, m) else math.copysign(math.inf, x)
