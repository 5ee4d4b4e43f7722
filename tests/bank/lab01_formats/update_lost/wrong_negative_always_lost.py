"""Compares with half the gap, sign and all."""
import math


def update_lost(param, update, e, m):
    bias = 2 ** (e - 1) - 1

    def rounded(x):
        if x == 0 or math.isinf(x):
            return x
        exponent = max(math.frexp(x)[1] - 1, 1 - bias) - m
        y = math.ldexp(round(math.ldexp(x, -exponent)), exponent)
        return y if abs(y) <= (2 - 2.0**-m) * 2.0**bias else math.copysign(math.inf, x)

    param, update = rounded(param), rounded(update)
    if math.isinf(param) or math.isinf(update):
        return param + update == param
    gap = 2.0 ** (max(math.frexp(param)[1] - 1 if param else -9999, 1 - bias) - m)
    return update <= gap / 2
