"""Moments as numpy arrays, the step count as a numpy integer."""
import numpy as np


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    if not state:
        state["t"] = np.zeros(len(params), dtype=np.int64)
        state["m"] = [np.zeros(tuple(p.shape)) for p in params]
        state["v"] = [np.zeros(tuple(p.shape)) for p in params]
    for k in range(len(params)):
        if grads[k] is None:
            continue
        g, p = grads[k].numpy(), params[k].detach().numpy()
        state["t"][k] += 1
        t = state["t"][k]
        state["m"][k] = betas[0] * state["m"][k] + (1 - betas[0]) * g
        state["v"][k] = betas[1] * state["v"][k] + (1 - betas[1]) * g * g
        p -= lr * (state["m"][k] / (1 - betas[0] ** t)) / (np.sqrt(state["v"][k] / (1 - betas[1] ** t)) + eps)
