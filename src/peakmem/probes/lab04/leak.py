"""Lab 4's leak: training steps that log each layer's output, and hold more than the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from peakmem.probes.arrays import gradient_arrays
from peakmem.probes.hooks import hooks_on
from peakmem.probes.leak import leaking

__all__ = ["find_the_leak", "logged_steps"]


class _Layer(nn.Module):
    """tanh(x * scale), which saves its input, made by the previous layer, and its result."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x * self.scale)


def logged_steps(
    step: Callable[[Sequence[nn.Module], Tensor], Sequence[float]],
    n_layers: int,
    rows: int,
    columns: int,
    seed: int,
    steps: int = 2,
) -> dict[str, Any]:
    """Call `step(layers, x)` several times on the same layers, without clearing gradients.

    Returns the calls' results (`log`), the layers' `gradients`, how many `hooks` the layers have at
    the end, and whether the `inputs`, x and the list of layers, are unchanged.
    """
    torch.manual_seed(seed)
    before = hooks_on()
    layers = [_Layer(columns) for _ in range(n_layers)]
    x = torch.randn(rows, columns)
    given, total = list(layers), x.sum().item()
    log = [[float(value) for value in step(given, x)] for _ in range(steps)]
    return {
        "log": log,
        "gradients": gradient_arrays(layer.scale for layer in layers),
        "hooks": hooks_on(*layers) - before,
        "inputs": given == layers and x.sum().item() == total and not x.requires_grad,
    }


find_the_leak = leaking(logged_steps, "step_with_log", rows=2, columns=2)
