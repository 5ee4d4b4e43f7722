"""Multiplies by 2**fraction_bits."""


def fixed_point_value(bits, width, fraction_bits):
    signed = bits - (1 << width) if bits >> (width - 1) else bits
    return float(signed * 2**fraction_bits)
