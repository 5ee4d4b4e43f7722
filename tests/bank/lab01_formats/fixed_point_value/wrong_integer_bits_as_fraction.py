"""Takes fraction_bits for the bits before the point."""


def fixed_point_value(bits, width, fraction_bits):
    signed = bits - (1 << width) if bits >> (width - 1) else bits
    return signed / 2 ** (width - fraction_bits)
