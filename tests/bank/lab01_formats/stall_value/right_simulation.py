"""Simulates exactly with fractions; where a format has many numbers, jumps over equal steps."""
import math
from fractions import Fraction


def stall_value(step, exponent_bits, mantissa_bits):
    lowest = 2 - 2 ** (exponent_bits - 1)
    top = Fraction(2) ** (2 ** (exponent_bits - 1))
    exact = Fraction(step)

    def gap(x):
        k = lowest
        if x >= Fraction(2) ** lowest:
            k = math.frexp(float(x))[1] - 1
            if x < Fraction(2) ** k:
                k -= 1
        return Fraction(2) ** (k - mantissa_bits)

    def rounded(x):
        return round(x / gap(x)) * gap(x)

    s = Fraction(0)
    while True:
        t = rounded(s + exact)
        if t == s:
            return float(s)
        if t >= top:
            return math.inf
        end = gap(t) * 2 ** (mantissa_bits + 1)
        u = rounded(t + exact)
        if u < end and u - t == t - s:
            t += max(int((end - exact - t) / (t - s)), 0) * (t - s)
        s = t
