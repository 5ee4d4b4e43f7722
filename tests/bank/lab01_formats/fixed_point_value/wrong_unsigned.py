"""No sign at all."""


def fixed_point_value(bits, width, fraction_bits):
    return bits * 2.0**-fraction_bits
