"""Slices of an array, with a clipped start."""
import numpy as np


def live_bytes(tensors, n_steps):
    live = np.zeros(n_steps, np.int64)
    for size, first, last in tensors:
        live[max(first, 0) : max(last + 1, 0)] += size
    return live
