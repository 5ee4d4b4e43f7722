"""Flips the bits and forgets the one."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    negative = bits >> (width - 1) & 1
    if encoding == "sign-magnitude":
        return -(bits - 2 ** (width - 1)) if negative else bits
    if encoding == "twos-complement":
        return -(~bits & (2**width - 1)) if negative else bits
    raise ValueError(encoding)
