"""In place, but every intermediate value is as large as its tensor. [earns 2]"""
import math

import torch


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = state[i]
        s["t"] += 1
        s["m"].mul_(betas[0]).add_(g, alpha=1 - betas[0])
        s["v"].mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
        root = (s["v"] / (1 - betas[1] ** s["t"])).sqrt().add_(eps)
        p.addcdiv_(s["m"], root, value=-lr / (1 - betas[0] ** s["t"]))
