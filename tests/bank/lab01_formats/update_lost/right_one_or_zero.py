"""1 or 0, which are equal to True and False."""
from fractions import Fraction


def nearest(x, e, m):
    bias = 2 ** (e - 1) - 1
    gap = Fraction(2) ** (1 - bias - m)
    while abs(x) >= gap * 2 ** (m + 1):
        gap *= 2
    return round(x / gap) * gap


def update_lost(param: float, update: float, exponent_bits: int, mantissa_bits: int) -> int:
    e, m = exponent_bits, mantissa_bits
    limit = Fraction(2) ** (2 ** (e - 1))
    p, u = nearest(Fraction(param), e, m), nearest(Fraction(update), e, m)
    p_is_inf, u_is_inf = abs(p) >= limit, abs(u) >= limit
    if p_is_inf and u_is_inf:
        return int((p > 0) == (u > 0))
    if p_is_inf or u_is_inf:
        return int(p_is_inf)
    return 1 if nearest(p + u, e, m) == p else 0
