"""Numpy integers."""

import numpy as np


def training_bytes(n_params, activation_bytes_fp32, recipe):
    rows = {
        "fp32": [4, 4, 0, 4, 4, 4],
        "mixed": [2, 2, 4, 4, 4, 2],
        "mixed_fp32_grads": [2, 4, 4, 4, 4, 2],
        "bf16": [2, 2, 0, 2, 2, 2],
        "sgd": [4, 4, 0, 0, 0, 4],
    }
    if recipe not in rows:
        raise ValueError(recipe)
    counts = np.array([n_params] * 5 + [activation_bytes_fp32 // 4], dtype=np.int64)
    names = "weights gradients master_weights first_moment second_moment activations".split()
    return dict(zip(names, counts * np.array(rows[recipe], dtype=np.int64)))
