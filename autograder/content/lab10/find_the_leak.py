"""find_the_leak: attention by blocks that keeps all probabilities in a list and by views."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autograder.content.leaks import Leak, leak_task
from autograder.content.meter_tampering import NO_METER_TAMPERING
from peakmem.probes.lab10.leak import watched_attention

__all__ = ["find_the_leak", "lean_attention"]

_LARGE = {"heads": 1, "seq": 2048, "head_dim": 32, "block": 64}

Watched = tuple[Tensor, Tensor, Tensor]


def lean_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    block: int,
    *,
    entropy_of: Callable[[Tensor], Tensor] = lambda p: torch.special.entr(p).sum(-1),
    column: int = 0,
    scaled: bool = True,
) -> Watched:
    """Return attention's output, each row's entropy, and its share of the first token.

    Each option turns it into one of the mistakes.
    """
    outputs, entropies, firsts = [], [], []
    for rows in torch.split(q, block, dim=-2):
        scores = rows @ k.mT / (math.sqrt(q.shape[-1]) if scaled else 1.0)
        probabilities: Tensor = scores.softmax(dim=-1)
        outputs.append(probabilities @ v)
        entropies.append(entropy_of(probabilities))
        firsts.append(probabilities[..., column].clone())
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


def _nan_where_zero(p: Tensor) -> Tensor:
    return -(p * p.log()).sum(-1)


def _in_bits(p: Tensor) -> Tensor:
    bits: Tensor = torch.special.entr(p).sum(-1) / math.log(2)
    return bits


def _sizes(rng: np.random.Generator) -> dict[str, int]:
    """Sizes whose number of rows isn't a multiple of the block."""
    block = int(rng.integers(3, 6))
    seq = block * int(rng.integers(2, 5)) + int(rng.integers(1, block))
    return {"heads": 2, "seq": seq, "head_dim": 4, "block": block, "seed": _seed(rng)}


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _blocks(count: float) -> Callable[[Mapping[str, Any]], int]:
    """Some blocks of probabilities, and eight times q."""
    return lambda sizes: int(
        4 * sizes["heads"] * sizes["seq"] * (count * sizes["block"] + 8 * sizes["head_dim"])
    )


def _matrices(count: float) -> Callable[[Mapping[str, Any]], int]:
    return lambda sizes: int(4 * count * sizes["heads"] * sizes["seq"] ** 2)


def _mean_entropy(q: Tensor, k: Tensor, v: Tensor, block: int) -> Watched:
    return lean_attention(q, k, v, block, entropy_of=lambda p: torch.special.entr(p).mean(-1))


find_the_leak = leak_task(
    Leak(
        lab="lab10",
        function="lean_attention",
        work=watched_attention,
        reference=lean_attention,
        small=_sizes,
        large=lambda rng: {**_LARGE, "seed": _seed(rng)},
        most_bytes=_blocks(6),
        edges=[{"heads": 2, "seq": 7, "head_dim": 4, "block": 3, "seed": 0, "masked": True}],
        mutants={
            "nan_where_zero": lambda *a: lean_attention(*a, entropy_of=_nan_where_zero),
            "entropy_in_bits": lambda *a: lean_attention(*a, entropy_of=_in_bits),
            "mean_entropy": _mean_entropy,
            "last_token": lambda *a: lean_attention(*a, column=-1),
            "not_scaled": lambda *a: lean_attention(*a, scaled=False),
        },
        leaks={"whole_matrix": _matrices(1.9), "blocks_stay": _matrices(1)},
        mistakes={
            "whole_matrix": "Twice the size of all probabilities is alive: you make them for all "
            "rows at once, or keep an earlier call's. Go block by block, and keep none.",
            "blocks_stay": "The probabilities of every block are still alive. A list or a view "
            "holds them: p[..., 0] keeps all of p's storage alive. Compute what you need from a "
            "block immediately, and clone() views.",
            "nan_where_zero": "Where a probability is 0, its logarithm is -inf, and 0 times -inf "
            "is NaN. The limit is 0, which torch.special.entr returns.",
            "entropy_in_bits": "Your entropy is in bits. It is the sum of -p log p, with the "
            "natural logarithm.",
            "mean_entropy": "Your entropy is a mean over the columns. It is their sum.",
            "last_token": "You use the last token. Return the share of the first token, column 0.",
            "not_scaled": "Divide scores by the square root of head_dim, as in the given code.",
        },
    ),
    ban=NO_METER_TAMPERING,
)
