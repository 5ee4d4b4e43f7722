"""Plays the for-loop tensor by tensor, with numpy's integers."""
import numpy as np


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * np.prod(shape, dtype=np.int64) for shape in shapes]
    always = 4 * sum(sizes)
    top, denom = 0, 0
    if optimizer == "for-loop":
        for size in sizes:
            top = max(top, denom + size + size)
            denom = size
    elif optimizer == "foreach":
        top = sum(sizes)
    phase = "step" if top > activation_bytes else "backward"
    return always + max(top, activation_bytes), phase
