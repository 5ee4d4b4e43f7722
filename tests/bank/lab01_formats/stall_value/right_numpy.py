"""The exponent by numpy's frexp; returns numpy scalars."""
import numpy as np


def stall_value(step, exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    mantissa, exponent = np.frexp(np.float64(step))
    if step <= np.ldexp(1.0, -bias - mantissa_bits):
        return np.float64(0)
    exponent = exponent - (mantissa == 0.5) + mantissa_bits + 1
    return np.ldexp(1.0, exponent) if exponent <= bias else np.inf
