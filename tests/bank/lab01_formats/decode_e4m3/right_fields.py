"""Fields by shifts and masks."""
import math


def decode_e4m3(bits: int) -> float:
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 3 & 0xF, bits & 0x7
    if exponent == 15 and mantissa == 7:
        return math.nan
    if exponent == 0:
        return sign * math.ldexp(mantissa, -9)
    return sign * math.ldexp(8 + mantissa, exponent - 10)
