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
