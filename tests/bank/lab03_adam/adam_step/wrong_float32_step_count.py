"""Keeps the step count as torch does, as a float32 tensor."""

import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {
                "step": torch.tensor(0.0),
                "exp_avg": torch.zeros_like(param),
                "exp_avg_sq": torch.zeros_like(param),
            }
        own = state[i]
        own["step"] += 1
        own["exp_avg"].lerp_(grad, 1 - beta1)
        own["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        first = own["exp_avg"] / (1 - beta1 ** own["step"])
        second = own["exp_avg_sq"] / (1 - beta2 ** own["step"])
        param -= lr * first / (second.sqrt() + eps)
