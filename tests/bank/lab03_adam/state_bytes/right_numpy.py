"""Numpy's prod, and a numpy integer as the result."""
import numpy as np


def state_bytes(shapes, optimizer):
    counts = np.array([np.prod(shape, dtype=np.int64) for shape in shapes], dtype=np.int64)
    if optimizer in ("sgd", "momentum", "adam"):
        return {"sgd": 0, "momentum": 4, "adam": 8}[optimizer] * counts.sum()
    if optimizer == "adam8bit":
        return (2 * counts + 8 * np.ceil(counts / 256).astype(np.int64)).sum()
    return 4 * sum(
        n // shape[-1] + n // shape[-2] if len(shape) > 1 else n for n, shape in zip(counts, shapes)
    )
