"""A sign bit by a table of widths, any other width taken for the next."""

SIGN = {8: 0x80, 16: 0x8000, 32: 0x80000000}


def integer_value(bits, width, encoding):
    if encoding not in ("unsigned", "sign-magnitude", "twos-complement"):
        raise ValueError(encoding)
    sign = SIGN[min(known for known in SIGN if known >= width)]
    if encoding == "unsigned" or not bits & sign:
        return bits
    return -(bits - sign) if encoding == "sign-magnitude" else bits - 2 * sign
