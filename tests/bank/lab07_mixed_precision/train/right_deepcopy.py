"""A copy of the model in low precision, refreshed before each step."""

import copy

import torch


def train(model, batches, precision, lr=0.1):
    if precision not in ("float32", "float16", "bfloat16"):
        raise ValueError(precision)
    low = copy.deepcopy(model).to(getattr(torch, precision))
    scale = 65536.0 if precision == "float16" else 1.0
    losses = []
    for batch in batches:
        with torch.no_grad():
            for p, q in zip(low.parameters(), model.parameters()):
                p.copy_(q)
        low.zero_grad()
        loss = low(*batch)
        losses.append(loss.item())
        (scale * loss).backward()
        grads = [p.grad.to(torch.float32) for p in low.parameters()]
        if any(not torch.isfinite(g).all() for g in grads):
            scale *= 0.5
            continue
        for q, g in zip(model.parameters(), grads):
            q.data -= lr * g / scale
    return losses
