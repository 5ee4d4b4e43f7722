"""Reads sign and magnitude."""


def fixed_point_value(bits, width, fraction_bits):
    sign = -1 if bits >> (width - 1) else 1
    return sign * (bits & ((1 << (width - 1)) - 1)) / 2**fraction_bits
