"""One formula for both signed encodings: two's complement."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    negative = bits >> (width - 1) & 1
    if encoding in ("sign-magnitude", "twos-complement"):
        return bits - 2**width if negative else bits
    raise ValueError(encoding)
