"""numpy's whole numbers, and divmod."""
import numpy as np


def largest_batch(seq, shape, budget_bytes):
    d = np.int64(shape.d_model)
    per_layer = np.int64(12) * d**2 + 13 * d
    state = 16 * (shape.n_layers * per_layer + (shape.vocab + shape.context) * d + 2 * d)
    if budget_bytes < state:
        return 0
    batch, _ = divmod(
        budget_bytes - state, shape.n_layers * seq * (34 * d + 5 * shape.n_heads * seq)
    )
    return batch
