"""A system of equations, as an array."""
import numpy as np


def memory_line(batch_sizes, peaks):
    rows = np.stack([np.ones(len(batch_sizes)), batch_sizes], axis=1)
    return np.linalg.lstsq(rows, np.asarray(peaks, float), rcond=None)[0]
