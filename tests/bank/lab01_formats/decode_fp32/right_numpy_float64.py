"""Integer views and float64 of numpy; returns a numpy scalar. Uses a helper."""
import numpy as np


def split(bits):
    word = np.array(bits, dtype=np.uint32)
    return int(word >> 31), int(word >> 23 & 0xFF), int(word & 0x7FFFFF)


def decode_fp32(bits):
    sign, exponent, fraction = split(bits)
    sign = np.float64(1 - 2 * sign)
    if exponent == 255:
        return sign * np.inf if fraction == 0 else np.float64("nan")
    hidden = 1 if exponent else 0
    return sign * np.ldexp(np.float64(hidden + fraction / 2**23), max(exponent, 1) - 127)
