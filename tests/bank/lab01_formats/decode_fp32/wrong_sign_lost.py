"""Never looks at bit 31."""
import math


def decode_fp32(bits):
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 255:
        return math.nan if fraction else math.inf
    if exponent == 0:
        return fraction * 2.0**-126
    return (1 + fraction) * 2.0 ** (exponent - 127)
