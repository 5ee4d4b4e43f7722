"""Lab 10's leak: tiled attention that logs statistics of its probabilities, and holds them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from peakmem.probes.arrays import array_of
from peakmem.probes.lab10.figures import sums
from peakmem.probes.leak import leaking

__all__ = ["find_the_leak", "watched_attention"]


_LOW = 200.0  # exp(-104) is 0 in float32


def watched_attention(
    attention: Callable[..., tuple[Tensor, Tensor, Tensor]],
    heads: int,
    seq: int,
    head_dim: int,
    block: int,
    seed: int,
    masked: bool = False,
) -> dict[str, Any]:
    """Call `attention(q, k, v, block)` twice on random tensors (1, heads, seq, head_dim).

    With `masked`, the second token's scores are so low that its probabilities are 0.
    Returns sums over the output's `rows` and `columns`, and each row's `entropy` and share of the
    `first` token.
    """
    generator = torch.Generator().manual_seed(seed)
    shape = (1, heads, seq, head_dim)
    q, k, v = (torch.randn(shape, generator=generator) for _ in range(3))
    q *= 2
    if masked:  # the other scores stay small, so that no way of computing an entropy loses digits
        q[..., -1] = 1
        k[..., 1, -1] = -_LOW * head_dim**0.5
    attention(q, k, v, block)  # the second call below shows if this one changed q, k or v
    output, entropy, first = attention(q, k, v, block)
    of_rows, of_columns = sums(output)
    return {
        "rows": of_rows,
        "columns": of_columns,
        "entropy": array_of(entropy.double()),
        "first": array_of(first.double()),
    }


find_the_leak = leaking(watched_attention, "lean_attention", heads=1, seq=5, head_dim=2, block=2)
