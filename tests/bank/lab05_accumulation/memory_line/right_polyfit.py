"""numpy's polyfit, lowest power last."""
import numpy as np


def memory_line(batch_sizes, peaks):
    slope, fixed = np.polyfit(batch_sizes, peaks, 1)
    return fixed, slope
