"""Lab 7's leak: training on 16-bit copies of the weights, one set of which leaks in each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from peakmem.probes.leak import leaking

__all__ = ["find_the_leak", "low_precision_training"]

# Not the lab's, and not a power of two, so that lr times a gradient is rounded in 16 bits.
_LR = 0.11


def low_precision_training(
    train: Callable[..., Any], n_batches: int, rows: int, width: int, seed: int
) -> dict[str, Any]:
    """Call `train(masters, batches, lr)` on two square matrices.

    Returns its `losses`, the norm of each of the `masters` afterwards, and whether `batches` are
    unchanged.
    """
    generator = torch.Generator().manual_seed(seed)
    masters = [torch.randn(width, width, generator=generator).div_(width**0.5) for _ in range(2)]
    batches = [
        tuple(torch.randn(rows, width, generator=generator) for _ in range(2))
        for _ in range(n_batches)
    ]
    # The student gets copies of the lists, so that replacing an item doesn't replace a master.
    given, before = list(batches), _sums(batches)
    found = train(list(masters), given, _LR)
    losses = [loss.item() if isinstance(loss, torch.Tensor) else float(loss) for loss in found]
    kept = len(given) == len(batches) and _sums(batches) == before
    return {"losses": losses, "masters": [float(torch.norm(m)) for m in masters], "batches": kept}


def _sums(batches: Sequence[Sequence[torch.Tensor]]) -> list[float]:
    return [float(tensor.sum()) for batch in batches for tensor in batch]


find_the_leak = leaking(low_precision_training, "train_low", rows=2, width=2)
