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
