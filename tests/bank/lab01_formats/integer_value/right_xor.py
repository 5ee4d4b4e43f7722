"""Two's complement by xor with the sign bit, and match."""


def integer_value(bits, width, encoding):
    sign = 1 << (width - 1)
    match encoding:
        case "unsigned":
            return bits
        case "sign-magnitude":
            magnitude = bits & ~sign
            return -magnitude if bits & sign else magnitude
        case "twos-complement":
            return (bits ^ sign) - sign
        case _:
            raise ValueError(encoding)
