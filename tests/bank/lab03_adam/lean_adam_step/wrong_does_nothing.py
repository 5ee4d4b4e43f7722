"""Takes no memory, for it does nothing."""
import math

import torch


def pieces(tensor, most=2**15):
    if tensor.numel() <= most:
        yield tensor
        return
    longest = max(range(tensor.ndim), key=lambda dim: tensor.shape[dim])
    for half in tensor.tensor_split(2, dim=longest):
        yield from pieces(half, most)


@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
        own = state[i]
        own["t"] += 1
        step_size = lr / (1 - beta1 ** own["t"])
        root = math.sqrt(1 - beta2 ** own["t"])
        parts = (pieces(x) for x in (param, grad, own["m"], own["v"]))
        for p, g, m, v in zip(*parts):
            m.mul_(beta1).add_(g, alpha=1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            pass
