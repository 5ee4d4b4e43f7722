"""Rounds to the gap, and forgets that a format ends."""
import math


def update_lost(param, update, e, m):
    lowest = 2 - 2 ** (e - 1)

    def rounded(x):
        if x == 0:
            return x
        exponent = max(math.frexp(x)[1] - 1, lowest) - m
        return math.ldexp(round(math.ldexp(x, -exponent)), exponent)

    param = rounded(param)
    return rounded(param + rounded(update)) == param
