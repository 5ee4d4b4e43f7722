"""find_the_leak: views of 16 bits that keep all 32 bits alive."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from autograder.content.leaks import Leak, leak_task
from peakmem.probes.lab01 import halves_bound, halves_offset, keep_halves

__all__ = ["find_the_leak", "report_of_halves", "upper_halves"]

if TYPE_CHECKING:
    from torch import Tensor  # torch loads late: judging a correct answer doesn't need it

    _Load = Callable[[int], Tensor]


def upper_halves(load: _Load, count: int) -> list[Tensor]:
    """Return the upper halves, 16 bits per number, without keeping anything else alive."""
    import torch

    return [load(i).view(torch.int16)[1::2].clone() for i in range(count)]


def report_of_halves(*, count: int, numbers: int, seed: int) -> dict[str, Any]:
    """Return what `keep_halves` reports on `upper_halves`, computed without torch."""
    spread = np.arange(numbers, dtype=np.int64) * 3137 % 2**19 * 4093
    kept = []
    for i in range(count):
        bits = (spread + halves_offset(seed, i)) % 2**25 + 0x3F000000
        values = bits.astype(np.uint32).view(np.float32)
        values[1::2] *= -1
        kept.append((values.view(np.uint32) >> 16).astype(np.uint16).view(np.int16))
    return {
        "tensors": ", ".join([f"int16[{numbers}]"] * count),
        "values": "; ".join(" ".join(map(str, half[:5].tolist())) for half in kept),
        "sums": [int(half.sum(dtype=np.int64)) for half in kept],
        "loaded": list(range(count)),
    }


def _lower_halves(load: _Load, count: int) -> list[Tensor]:
    import torch

    return [load(i).view(torch.int16)[::2].clone() for i in range(count)]


def _rounded_halves(load: _Load, count: int) -> list[Tensor]:
    import torch

    return [load(i).bfloat16().view(torch.int16) for i in range(count)]


def _small(rng: np.random.Generator) -> dict[str, int]:
    return {
        "count": int(rng.integers(2, 6)),
        "numbers": int(rng.integers(5, 40)),
        "seed": int(rng.integers(2**31)),
    }


def _large(rng: np.random.Generator) -> dict[str, int]:
    return {
        "count": int(rng.integers(14, 20)),
        "numbers": 2**18 + int(rng.integers(2**10)),
        "seed": int(rng.integers(2**31)),
    }


find_the_leak = leak_task(
    Leak(
        lab="lab01",
        function="upper_halves",
        work=keep_halves,
        reference=upper_halves,
        results=report_of_halves,
        small=_small,
        large=_large,
        most_bytes=halves_bound,
        mistakes={
            "loads_all": "You hold all whole tensors at once. Load one, keep its upper half, and "
            "free it before you load the next.",
            "keeps_storage": "Twice the halves' bytes are live at once. A view keeps the whole "
            "tensor's storage alive, however little of it you use: copy the half, for example with "
            "`.clone()`, and copy it only once.",
            "lower_halves": "Those are the lower halves. The upper half of each number is the "
            "second of its two 16-bit integers.",
            "rounds": "Your function rounds to the nearest bf16 number; the given code truncates. "
            "Return the same values.",
        },
        mutants={"lower_halves": _lower_halves, "rounds": _rounded_halves},
        leaks={
            "loads_all": lambda sizes: 5 * sizes["count"] * sizes["numbers"],
            # All tensors in full, or all halves twice. Fewer bytes could also be temporaries, so
            # they name no mistake.
            "keeps_storage": lambda sizes: 4 * sizes["count"] * sizes["numbers"],
        },
    ),
    results_points=0,
    peak_points=2,
)
