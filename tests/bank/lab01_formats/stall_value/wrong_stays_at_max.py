"""Stays at the largest number instead of infinity."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    if step <= smallest / 2:
        return 0.0
    s, gap = 2.0 ** (1 - bias), smallest
    while gap < 2 * step:
        s, gap = 2 * s, 2 * gap
    return min(s, largest)
