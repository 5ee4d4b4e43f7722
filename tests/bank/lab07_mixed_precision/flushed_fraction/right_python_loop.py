"""One value at a time."""

import torch


def flushed_fraction(grads, dtype, scale):
    kinds = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    try:
        kind = kinds[dtype]
    except KeyError:
        raise ValueError("float16 or bfloat16, not " + dtype)
    values = [v for g in grads for v in g.flatten().tolist() if v != 0.0]
    if not values:
        return 0.0
    return sum(torch.tensor(v * scale).to(kind).item() == 0 for v in values) / len(values)
