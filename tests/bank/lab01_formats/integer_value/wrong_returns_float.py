"""Returns floats: the weights are powers of 2.0."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    negative = bits >> (width - 1) & 1
    if encoding == "sign-magnitude":
        return 2.0 ** (width - 1) - bits if negative else float(bits)
    if encoding == "twos-complement":
        return bits - 2.0**width if negative else float(bits)
    raise ValueError(encoding)
