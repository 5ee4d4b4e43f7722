"""By formula: the first power of two that is at least step * 2**(m + 1)."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    if step <= smallest / 2:
        return 0.0
    power = 2.0 ** math.ceil(math.log2(step))
    while power / 2 >= step:
        power /= 2
    while power < step:
        power *= 2
    stall = power * 2.0 ** (m + 1)
    return stall if stall <= largest else math.inf
