"""Keeps the moments in a global. [earns 1]"""
import torch


memory = {}


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if (i, p.shape) not in memory:
            memory[i, p.shape] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        s = memory[i, p.shape]
        s["t"] += 1
        t = s["t"]
        s["m"] = beta1 * s["m"] + (1 - beta1) * g
        s["v"] = beta2 * s["v"] + (1 - beta2) * g * g
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)
