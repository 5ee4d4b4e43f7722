"""Numpy's integers."""

import numpy as np

BYTES = {"fp32": 16, "mixed": 16, "mixed_fp32_grads": 18, "bf16": 8, "sgd": 8}


def largest_model(recipe, budget_bytes, activation_bytes):
    left = np.int64(budget_bytes) - np.int64(activation_bytes)
    return np.maximum(left, 0) // np.int64(BYTES[recipe])
