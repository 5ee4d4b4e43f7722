"""Takes nothing in bfloat16 for flushed."""

import torch


def flushed_fraction(grads, dtype, scale):
    if dtype not in ("float16", "bfloat16"):
        raise ValueError(dtype)
    if dtype == "bfloat16":
        return 0.0
    values = torch.cat([torch.zeros(0), *(g.flatten() for g in grads)])
    values = values[values != 0]
    return float(((values * scale).half() == 0).double().mean()) if len(values) else 0.0
