"""Negates all bits, the sign bit with them."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    negative = bits >> (width - 1) & 1
    if encoding == "sign-magnitude":
        return -bits if negative else bits
    if encoding == "twos-complement":
        return bits - 2**width if negative else bits
    raise ValueError(encoding)
