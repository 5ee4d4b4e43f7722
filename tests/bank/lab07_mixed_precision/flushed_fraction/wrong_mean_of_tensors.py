"""Takes the mean of the shares."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    shares = []
    for grad in grads:
        low = (grad * scale).to(dtypes[dtype])
        nonzero = int((grad != 0).sum())
        flushed = int(((grad != 0) & (low == 0)).sum())
        shares.append(flushed / nonzero if nonzero else 0.0)
    return sum(shares) / len(shares) if shares else 0.0
