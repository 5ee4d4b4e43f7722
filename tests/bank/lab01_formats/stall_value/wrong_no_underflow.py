"""The formula without the smallest number."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    power = 2.0 ** math.ceil(math.log2(step * 2 ** (m + 1)))
    while power / 2 >= step * 2 ** (m + 1):
        power /= 2
    while power < step * 2 ** (m + 1):
        power *= 2
    return power if power <= largest else math.inf
