"""Any step below the smallest normal number is lost to it."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    if step < 2.0 ** (1 - bias):
        return 0.0
    s, gap = 2.0 ** (1 - bias), smallest
    while gap < 2 * step:
        s, gap = 2 * s, 2 * gap
        if s > largest:
            return math.inf
    return s
