"""Knows zero, but no subnormal numbers. [earns 3]"""
import math


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 255:
        return math.nan if fraction else sign * math.inf
    if exponent == 0 and fraction == 0:
        return sign * 0.0
    return sign * (1 + fraction) * 2.0 ** (exponent - 127)
