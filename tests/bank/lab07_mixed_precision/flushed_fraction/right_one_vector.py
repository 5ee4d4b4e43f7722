"""All values in one vector."""

import torch


def flushed_fraction(grads, dtype, scale):
    if dtype not in ("float16", "bfloat16"):
        raise ValueError(dtype)
    values = torch.cat([torch.zeros(1)] + [g.flatten() for g in grads])
    values = values[values != 0]
    if values.numel() == 0:
        return 0.0
    return (values.mul(scale).to(getattr(torch, dtype)) == 0).double().mean().item()
