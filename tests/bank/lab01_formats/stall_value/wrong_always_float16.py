"""Simulates in float16 for every format."""
import numpy as np


def stall_value(step, e, m):
    s = np.float16(0)
    with np.errstate(over="ignore"):
        for _ in range(5000):
            t = np.float16(float(s) + step)
            if t == s:
                break
            s = t
    return float(s)
