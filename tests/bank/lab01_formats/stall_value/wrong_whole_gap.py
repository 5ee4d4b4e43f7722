"""Stops where the gap is larger than the step, not than twice the step."""
import math


def stall_value(step, e, m):
    bias = 2 ** (e - 1) - 1
    largest = (2 - 2.0**-m) * 2.0**bias
    smallest = 2.0 ** (1 - bias - m)
    if step <= smallest / 2:
        return 0.0
    power = 2.0 ** (1 - bias)
    while power > step * 2**m:
        power /= 2
    while power <= step * 2**m:
        power *= 2
    return power if power <= largest else math.inf
