"""Lost is what is not finite or 0 after the cast, so an overflow counts as well."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(dtype)
    nonzero = alive = 0
    for g in grads:
        low = (g[g != 0] * scale).to(dtypes[dtype])
        nonzero += low.numel()
        alive += int((low.isfinite() & (low != 0)).sum())
    return 1 - alive / nonzero if nonzero else 0.0
