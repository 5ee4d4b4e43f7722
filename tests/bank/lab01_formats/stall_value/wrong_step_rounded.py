"""Rounds the step to the format before it adds."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    lowest = 1 - bias
    exponent = max(math.frexp(step)[1] - 1, lowest) - m
    step = round(step / 2.0**exponent) * 2.0**exponent
    if step == 0:
        return 0.0
    if step > (2 - 2.0**-m) * 2.0**bias:
        return math.inf
    s, gap = 2.0**lowest, 2.0 ** (lowest - m)
    while gap < 2 * step:
        s, gap = 2 * s, 2 * gap
        if s > (2 - 2.0**-m) * 2.0**bias:
            return math.inf
    return s
