"""Exponent field 15 is NaN throughout."""
import math


def decode_e4m3(bits):
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 3 & 0xF, bits & 0x7
    if exponent == 15:
        return math.nan
    if exponent == 0:
        return sign * mantissa / 8 * 2.0**-6
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)
