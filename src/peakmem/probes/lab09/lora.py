"""Probe of lab 9's Lora: adapts, trains, merges and measures a linear layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from peakmem.probes import Namespace
from peakmem.probes.arrays import array_of, arrays_of, gradient_arrays
from peakmem.probes.metering import with_rises

__all__ = ["adapted", "layer_and_rows", "lora"]

_GIVEN = ("weight", "bias", "x")  # these depend only on the sizes

Array = npt.NDArray[np.float32]


def lora(student: Namespace, metered: bool = True, large: bool = False, **sizes: Any) -> Any:
    """Adapt a linear layer with the student's `Lora` (see `adapted`), or measure two steps of it.

    A `large` run returns the number of trained values (`n_trained`), whether the output `moved`,
    the `trainable` parameters and the output afterwards (`trained`), and if `metered`, `rise_bytes`
    and `numpy_rise_bytes`, including the layer itself. `layer_and_rows` makes its layer and x.
    """
    if not large:
        found = adapted(student.Lora, **sizes)
        return {name: found[name] for name in found if name not in _GIVEN}
    _two_steps(student.Lora, **{**sizes, "width": 8})
    return with_rises(lambda: _two_steps(student.Lora, **sizes), metered=metered)


def adapted(
    make: Callable[..., Any],
    n_in: int,
    n_out: int,
    rank: int,
    alpha: float,
    bias: bool,
    seed: int,
    steps: int = 3,
) -> dict[str, Any]:
    """Train `make(linear, rank, alpha)` for some steps of Adam, and merge it.

    Returns the base layer's original `weight` and `bias` (None without one), and inputs `x`; the
    outputs at the `start` and after training (`trained`), with the gradient of x for an upstream
    gradient of ones (`x_gradient`; None if there is none); the `trainable` parameters afterwards,
    which of them were `zero_at_start`, and whether training changed the base or gave it gradients
    (`base_changed`). `returned` tells whether merge() returned an nn.Linear; `merged` is the output
    of its weight and bias, or else the output before training. Another adapter of the same class
    exists at the same time, and merge() was called before training. Neither may have an effect.
    """
    linear, x, y = _layer_and_data(n_in, n_out, bias, seed)
    base = list(linear.parameters())
    before = [parameter.detach().clone() for parameter in base]
    torch.manual_seed(seed)
    module = make(linear, rank, alpha)
    make(nn.Linear(n_in, n_out, bias=bias), rank, 2 * alpha)
    start = module(x)
    module.merge()  # now, which must not matter later
    zero = [not p.any() for p in module.parameters() if p.requires_grad]
    trainable = _trained(module, x, y, steps)
    leaf = x.clone().requires_grad_()
    output = module(leaf)
    output.sum().backward()
    trained = array_of(output)
    changed = not all(map(torch.equal, before, base)) or any(p.grad is not None for p in base)
    adapter = arrays_of(trainable)  # now, because merge() may change it
    merged = module.merge()
    returned = isinstance(merged, nn.Linear) and merged is not module
    after = nn.functional.linear(x, merged.weight, merged.bias) if returned else start
    return {
        "weight": array_of(before[0]),
        "bias": array_of(before[1]) if bias else None,
        "x": array_of(x),
        "start": array_of(start),
        "trainable": adapter,
        "zero_at_start": zero,
        "trained": trained,
        "x_gradient": gradient_arrays([leaf])[0],
        "base_changed": changed,
        "returned": returned,
        "merged": array_of(after),
    }


def _layer_and_data(
    n_in: int, n_out: int, bias: bool, seed: int
) -> tuple[nn.Linear, torch.Tensor, torch.Tensor]:
    """Draw a layer, inputs (2, 5, n_in) and targets (2, 5, n_out)."""
    generator = torch.Generator().manual_seed(seed)
    linear = nn.Linear(n_in, n_out, bias=bias)
    x = torch.randn(2, 5, n_in, generator=generator)
    y = torch.randn(2, 5, n_out, generator=generator)
    with torch.no_grad():
        for parameter in linear.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return linear, x, y


def _trained(module: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int) -> list[nn.Parameter]:
    """Take some steps of Adam; return the trained parameters."""
    trainable = [p for p in module.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, lr=0.05, foreach=False)
    for _ in range(steps):
        optimizer.zero_grad()
        (module(x) - y).square().sum().backward()
        optimizer.step()
    return trainable


def _two_steps(
    make: Callable[..., Any], width: int, rank: int, rows: int, seed: int
) -> dict[str, Any]:
    linear, x = layer_and_rows(width, rows, seed)
    module = make(linear, rank, 2.0 * rank)
    trainable = [p for p in module.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, foreach=False)
    start = module(x).detach()
    for _ in range(2):
        optimizer.zero_grad()
        module(x).square().sum().backward()
        optimizer.step()
    trained = module(x).detach()
    n_trained = sum(p.numel() for p in trainable)
    # Other parameters may be too many to send.
    kept = trainable if n_trained == 2 * rank * width else []
    return {
        "n_trained": n_trained,
        "moved": not torch.allclose(start, trained),
        "trainable": arrays_of(kept),
        "trained": array_of(trained),
    }


def layer_and_rows(width: int, rows: int, seed: int) -> tuple[nn.Linear, Tensor]:
    """Return the layer and the inputs (rows, width) of a large run, and seed torch."""
    torch.manual_seed(seed)
    x = torch.randn(rows, width)
    return nn.Linear(width, width), x
