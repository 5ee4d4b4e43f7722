"""The integer, divided by a power of two."""


def fixed_point_value(bits: int, width: int, fraction_bits: int) -> float:
    signed = bits - (1 << width) if bits >> (width - 1) else bits
    return signed / 2**fraction_bits
