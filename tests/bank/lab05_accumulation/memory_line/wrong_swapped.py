"""polyfit's own order."""
import numpy as np


def memory_line(batch_sizes, peaks):
    return tuple(np.polyfit(batch_sizes, peaks, 1))
