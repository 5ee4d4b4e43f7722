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
