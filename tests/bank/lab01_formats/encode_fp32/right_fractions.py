"""Exact rational arithmetic, and a loop that looks for the power of two."""
from fractions import Fraction


def encode_fp32(x):
    if x != x:
        return 0xFFFFFFFF
    sign = 1 if str(x)[0] == "-" else 0
    if abs(x) == float("inf"):
        return (sign << 31) + (255 << 23)
    value, exponent = abs(Fraction(x)), 0
    while exponent > -126 and value < Fraction(2) ** exponent:
        exponent -= 1
    while value >= Fraction(2) ** (exponent + 1):
        exponent += 1
    if exponent > 127:
        return (sign << 31) + (255 << 23)
    whole = round(value / Fraction(2) ** (exponent - 23))
    return (sign << 31) + ((exponent + 126) << 23) + whole
