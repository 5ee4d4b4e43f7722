"""KeyError for a width that is not 8, 16 or 32."""

MODULUS = {8: 2**8, 16: 2**16, 32: 2**32}


def integer_value(bits, width, encoding):
    modulus = MODULUS[width]
    negative = bits >= modulus // 2
    if encoding == "unsigned":
        return bits
    if encoding == "sign-magnitude":
        return modulus // 2 - bits if negative else bits
    if encoding == "twos-complement":
        return bits - modulus if negative else bits
    raise ValueError(encoding)
