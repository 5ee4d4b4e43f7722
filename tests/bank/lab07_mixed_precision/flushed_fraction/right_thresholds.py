"""No cast: half the smallest subnormal is known."""

import numpy as np

LIMITS = {"float16": 2.0**-25, "bfloat16": 2.0**-134}


def flushed_fraction(grads, dtype, scale):
    if dtype not in LIMITS:
        raise ValueError(dtype)
    total = lost = 0
    for grad in grads:
        sizes = np.abs(grad.numpy().astype(np.float64)) * scale
        total += np.count_nonzero(sizes)
        lost += np.count_nonzero((sizes > 0) & (sizes <= LIMITS[dtype]))
    return np.float64(lost / total) if total else 0
