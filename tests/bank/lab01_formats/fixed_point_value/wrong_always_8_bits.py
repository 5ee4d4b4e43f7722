"""Has 256 in it instead of the width."""


def fixed_point_value(bits, width, fraction_bits):
    return (bits - 256 if bits & 128 else bits) / 2**fraction_bits
