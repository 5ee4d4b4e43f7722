"""Takes the largest power of two that the format has for an overflow."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    smallest = 2.0 ** (1 - bias - m)
    if step <= smallest / 2:
        return 0.0
    s, gap = 2.0 ** (1 - bias), smallest
    while gap < 2 * step:
        s, gap = 2 * s, 2 * gap
    return s if s < 2.0**bias else math.inf
