"""Lab 9's leak: a gradient through int8 layers, whose float copies autograd saves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from peakmem.probes.arrays import gradient_arrays
from peakmem.probes.leak import leaking

__all__ = ["find_the_leak", "gradient_through"]

Layers = Sequence[tuple[Tensor, Tensor]]


def gradient_through(
    step: Callable[[Layers, Tensor], Any], n_layers: int, rows: int, width: int, seed: int
) -> dict[str, Any]:
    """Call `step(layers, x)` on square int8 layers twice; return the loss and the gradient of x.

    A layer is int8 codes (width, width) and a scale for each row, (width, 1).
    """
    generator = torch.Generator().manual_seed(seed)
    size = (width, width)
    layers = [
        (
            torch.randint(-127, 128, size, generator=generator, dtype=torch.int8),
            (torch.rand(width, 1, generator=generator) + 0.5) / (52 * width**0.5),
        )
        for _ in range(n_layers)
    ]
    x = torch.randn(rows, width, generator=generator).requires_grad_()
    step(layers, x)  # the second call below shows if this one changed x or the layers
    x.grad = None
    loss = step(layers, x)
    found = loss.item() if isinstance(loss, Tensor) else float(loss)
    return {"loss": found, "gradient": gradient_arrays([x])[0]}


find_the_leak = leaking(gradient_through, "quantized_step", rows=2, width=8)
