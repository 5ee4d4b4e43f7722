"""numpy's ldexp; returns a numpy scalar."""
import numpy as np


def fixed_point_value(bits, width, fraction_bits):
    signed = np.int64(bits) - np.where(bits >= 2 ** (width - 1), np.int64(2) ** width, 0)
    return np.ldexp(np.float64(signed), -fraction_bits)
