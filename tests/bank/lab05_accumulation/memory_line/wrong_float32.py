"""Least squares in float32."""
import numpy as np


def memory_line(batch_sizes, peaks):
    x, y = np.asarray(batch_sizes, np.float32), np.asarray(peaks, np.float32)
    dx = x - x.mean()
    slope = (dx * (y - y.mean())).sum() / (dx * dx).sum()
    return float(y.mean() - slope * x.mean()), float(slope)
