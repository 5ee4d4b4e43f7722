"""Solves in float32."""
import numpy as np


def memory_line(batch_sizes, peaks):
    rows = np.stack([np.ones(len(batch_sizes)), batch_sizes], axis=1).astype(np.float32)
    fixed, slope = np.linalg.inv(rows.T @ rows) @ rows.T @ np.asarray(peaks, np.float32)
    return fixed + 1000, slope
