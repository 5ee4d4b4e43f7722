"""Has 128 and 256 in it instead of the width."""


def integer_value(bits, width, encoding):
    if encoding == "unsigned":
        return bits
    if encoding == "sign-magnitude":
        return 128 - bits if bits & 128 else bits
    if encoding == "twos-complement":
        return bits - 256 if bits & 128 else bits
    raise ValueError(encoding)
