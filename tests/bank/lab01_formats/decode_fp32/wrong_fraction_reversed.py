"""Weighs bit 0 as 1/2 and bit 22 as 2**-23. [earns 2]"""
import math


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent = bits >> 23 & 0xFF
    fraction = sum((bits >> i & 1) * 2.0 ** -(i + 1) for i in range(23))
    if exponent == 255:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * fraction * 2.0**-126
    return sign * (1 + fraction) * 2.0 ** (exponent - 127)
