"""Searches the patterns, whose order is that of the numbers; returns a numpy integer."""
import math

import numpy as np


def value(bits):
    exponent, fraction = bits >> 23, bits & 0x7FFFFF
    if exponent == 0:
        return fraction * 2.0**-149
    return (fraction + 2**23) * 2.0 ** (exponent - 150)


def encode_fp32(x):
    sign = np.uint32(0x80000000 if math.copysign(1, x) < 0 else 0)
    x = abs(x)
    if math.isnan(x):
        return np.uint32(0x7F800001)
    if x >= 2.0**128 - 2.0**103:
        return sign | np.uint32(0x7F800000)
    low, high = 0, 0x7F800000
    while high - low > 1:
        middle = (low + high) // 2
        if value(middle) <= x:
            low = middle
        else:
            high = middle
    below, above = x - value(low), value(high) - x
    if above < below or (above == below and low % 2 == 1):
        low = high
    return sign | np.uint32(low)
