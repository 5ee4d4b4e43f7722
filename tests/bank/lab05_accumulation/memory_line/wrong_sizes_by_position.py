"""Fits over 0, 1, 2, ..."""
import numpy as np


def memory_line(batch_sizes, peaks):
    slope, fixed = np.polyfit(range(len(peaks)), peaks, 1)
    return fixed, slope
