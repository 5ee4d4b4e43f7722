"""Slices of an array, whose negative ends wrap."""
import numpy as np


def live_bytes(tensors, n_steps):
    live = np.zeros(n_steps, np.int64)
    for size, first, last in tensors:
        live[first : last + 1] += size
    return live
