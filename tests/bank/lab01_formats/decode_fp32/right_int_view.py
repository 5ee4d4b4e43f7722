"""An int64 viewed as float64, with names that an exercise elsewhere gives to banned things."""
import numpy as np


def decode_fp32(bits):
    half, single = bits & 0x7FFFFFFF, bits >> 31
    if half > 0x7F800000:
        return np.nan
    if half == 0x7F800000:
        value = np.inf
    elif half < 0x00800000:
        value = half * 2.0**-149
    else:
        value = np.array([(half << 29) + (896 << 52)], dtype=np.int64).view("f8")[0]
    return np.copysign(value, -1.0 if single else 1.0)
