"""Sums in float64, and lets add have a look at each element."""
import numpy as np


def careful_sum(x, add):
    for element in x:
        add(element, 0)
    return float(np.sum(x, dtype=np.float64))
