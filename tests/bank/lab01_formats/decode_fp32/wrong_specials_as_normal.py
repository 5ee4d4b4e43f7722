"""The formula of normal numbers for exponent field 255 too. [earns 3]"""


def decode_fp32(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent, fraction = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    if exponent == 0:
        return sign * fraction * 2.0**-126
    return sign * (1 + fraction) * 2.0 ** (exponent - 127)
