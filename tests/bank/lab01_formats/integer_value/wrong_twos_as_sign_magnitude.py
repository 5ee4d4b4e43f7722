"""One formula for both signed encodings: sign, then magnitude."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    negative = bits >> (width - 1) & 1
    if encoding in ("sign-magnitude", "twos-complement"):
        return -(bits - 2 ** (width - 1)) if negative else bits
    raise ValueError(encoding)
