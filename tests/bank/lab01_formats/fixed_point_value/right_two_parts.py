"""Whole part and fraction apart; floor division rounds down, so the fraction is added."""


def fixed_point_value(bits, width, fraction_bits):
    sign = 1 << (width - 1)
    whole, fraction = divmod((bits ^ sign) - sign, 1 << fraction_bits)
    return whole + fraction / (1 << fraction_bits)
