"""Counts with numpy integers, and gives the peak as a float."""
import numpy as np


def predict_training(shape, batch, seq):
    n, d, h, v = (np.int64(x) for x in (shape.n_layers, shape.d_model, shape.n_heads, shape.vocab))
    weights = np.array([v * d, shape.context * d, n * 3 * d * d, n * d * d, n * 8 * d * d])
    small = n * (3 + 1 + 4 + 1 + 4) * d + 2 * d
    count = weights.sum() + small
    rows = np.array([2 + 3 + 1, 2 + 4 + 4]) * d
    saved = 4 * batch * seq * (n * (rows.sum() + h + 4) + 2 * d + 2)
    logits = np.int64(4) * batch * seq * v
    optimizer = 2 * 4 * count + 4 * (12 * n + 4)
    peak = np.maximum(
        4 * count + optimizer + saved + 3 * logits,
        8 * count + optimizer + 8 * d * np.maximum(v, 4 * d),
    )
    return {
        "parameters": 4 * count,
        "gradients": 4 * count,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": float(peak),
    }
