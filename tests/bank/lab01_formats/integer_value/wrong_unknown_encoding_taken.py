"""Whatever is not the first two is taken for two's complement."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    negative = bits >> (width - 1) & 1
    if encoding == "sign-magnitude":
        return -(bits - 2 ** (width - 1)) if negative else bits
    return bits - 2**width if negative else bits
