"""Takes the upper halves from the bytes, and works on a flat copy."""
import numpy as np


def to_bf16(x):
    words = np.frombuffer(x.tobytes(), dtype="<u2").reshape(-1, 2).astype(np.int64)
    low, high = words[:, 0], words[:, 1].copy()
    not_nan = ~np.isnan(x.ravel())
    high[not_nan] += ((low > 0x8000) | ((low == 0x8000) & (high & 1 > 0)))[not_nan]
    high[~not_nan] |= 64
    return high.reshape(x.shape)
