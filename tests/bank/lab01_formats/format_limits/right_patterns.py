"""Decodes the patterns at the ends of each class, with any decoder of fields."""
import math


def value(exponent, mantissa, e, m):
    bias = (1 << (e - 1)) - 1
    if exponent == 0:
        return math.ldexp(mantissa, 1 - bias - m)
    return math.ldexp((1 << m) + mantissa, exponent - bias - m)


def format_limits(exponent_bits: int, mantissa_bits: int) -> dict:
    e, m = exponent_bits, mantissa_bits
    bias = (1 << (e - 1)) - 1
    return dict(
        epsilon=value(bias, 1, e, m) - value(bias, 0, e, m),
        min_subnormal=value(0, 1, e, m),
        min_normal=value(1, 0, e, m),
        max=value((1 << e) - 2, (1 << m) - 1, e, m),
    )
