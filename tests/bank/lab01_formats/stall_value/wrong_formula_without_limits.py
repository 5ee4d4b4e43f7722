"""The formula without the smallest and the largest number."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    k = math.frexp(step * 2.0 ** (m + 1))[1]
    power = 2.0**k
    return power / 2 if power / 2 == step * 2.0 ** (m + 1) else power
