"""Rounds to whole bytes."""
import numpy as np


def memory_line(batch_sizes, peaks):
    slope, fixed = np.polyfit(batch_sizes, peaks, 1)
    return round(fixed), round(slope)
