"""Takes 2**7 for the bias. [earns 3]"""
import math


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 255:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * fraction * 2.0**-126
    return sign * (1 + fraction) * 2.0 ** (exponent - 128)
