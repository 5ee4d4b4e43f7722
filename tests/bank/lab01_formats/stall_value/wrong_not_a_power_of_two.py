"""Solves gap = 2 * step as if the gap grew evenly."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    return step * 2 ** (m + 1)
