"""Moves the fields into a float64 by integer views."""
import numpy as np


def decode_e4m3(bits):
    magnitude = bits & 0x7F
    if magnitude == 0x7F:
        return float("nan")
    if magnitude < 8:
        value = magnitude * 2.0**-9
    else:
        value = np.array((magnitude << 49) + (1016 << 52), np.uint64).view(np.float64)[()]
    return np.copysign(value, 1 - 2.0 * (bits >> 7))
