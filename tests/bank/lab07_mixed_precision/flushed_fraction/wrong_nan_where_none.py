"""NaN where there is no value."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        low = (grad * scale).to(dtypes[dtype])
        nonzero += int((grad != 0).sum())
        flushed += int(((grad != 0) & (low == 0)).sum())
    return flushed / nonzero if nonzero else float("nan")
