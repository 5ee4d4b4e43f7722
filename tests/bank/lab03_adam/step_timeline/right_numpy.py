"""Differences first, then their running sum by numpy."""
import numpy as np


def step_timeline(param_bytes, activation_bytes, events):
    changes = np.zeros(len(events), dtype=np.int64)
    grads = state = False
    for i, event in enumerate(events):
        if event == "forward":
            changes[i] = activation_bytes
        if event == "backward":
            changes[i] = -activation_bytes + (0 if grads else param_bytes)
            grads = True
        if event == "step" and grads and not state:
            changes[i] = 2 * param_bytes
            state = True
        if event == "zero_grad(set_to_none=True)" and grads:
            changes[i] = -param_bytes
            grads = False
    return param_bytes + np.cumsum(changes)
