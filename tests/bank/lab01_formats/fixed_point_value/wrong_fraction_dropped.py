"""Shifts instead of dividing."""


def fixed_point_value(bits, width, fraction_bits):
    signed = bits - (1 << width) if bits >> (width - 1) else bits
    return float(signed >> fraction_bits)
