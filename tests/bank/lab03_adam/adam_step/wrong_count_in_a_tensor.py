"""A float32 count again, with the corrections drawn into the step's length and the root."""

import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    counts = state.setdefault("counts", torch.zeros(len(params)))
    for i, (param, grad) in enumerate(zip(params, grads)):
        if grad is None:
            continue
        m, v = state.setdefault(i, (torch.zeros_like(param), torch.zeros_like(param)))
        counts[i] += 1
        m.mul_(beta1).add_(grad, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        step_size = lr / (1 - torch.pow(beta1, counts[i]))
        root = (1 - torch.pow(beta2, counts[i])).sqrt()
        param.sub_(step_size * m / (v.sqrt() / root + eps))
