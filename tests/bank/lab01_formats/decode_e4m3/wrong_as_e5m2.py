"""Splits the bits as the other 8-bit format does."""
import math


def decode_e4m3(bits):
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 2 & 0x1F, bits & 0x3
    if exponent == 31:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa / 4 * 2.0**-14
    return sign * (1 + mantissa / 4) * 2.0 ** (exponent - 15)
