"""Knows a parameter's state by its shape. [earns 0]"""
import math

import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        key = tuple(param.shape)
        if key not in state:
            state[key] = {"step": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
        s = state[key]
        s["step"] += 1
        s["m"].mul_(betas[0]).add_(grad, alpha=1 - betas[0])
        s["v"].mul_(betas[1]).addcmul_(grad, grad, value=1 - betas[1])
        denom = (s["v"].sqrt() / math.sqrt(1 - betas[1] ** s["step"])).add_(eps)
        param.addcdiv_(s["m"], denom, value=-lr / (1 - betas[0] ** s["step"]))
