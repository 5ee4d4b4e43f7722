"""Tries to write an addition into the log that never was allowed."""
import numpy as np


def careful_sum(x, add):
    total = float(np.float16(np.sum(x, dtype=np.float64)))
    if hasattr(add, "_pairs"):
        add._pairs.append((total, 0.0))
    return total
