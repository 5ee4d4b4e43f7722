"""Probe of lab 6's forward on weights that come from a host, one layer at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from peakmem.execute.host_memory import HostTier
from peakmem.probes import Namespace, earlier_objects_set_aside
from peakmem.probes.arrays import array_of
from peakmem.probes.metering import rise_of

__all__ = ["stream_forward"]

Array = npt.NDArray[Any]


def stream_forward(
    student: Namespace,
    weights: Sequence[Array] | None = None,
    x: Array | None = None,
    width: int | None = None,
    fillings: Sequence[float] = (),
    rows: int = 0,
    metered: bool = True,
) -> dict[str, Any]:
    """Run the student's `stream_forward` on layers tanh(x @ weight), whose weights are on a host.

    `weights` and `x` are float64 arrays; if a weight is repeated, so is its layer. Returns
    `output`, the output's values; `requires_grad`, whether the output does; `gradients_on`, whether
    torch still records gradients afterwards; `loads`, the layers in the order of their load(); and
    `x_changed`, whether x or the list of layers has changed.

    With a `width`, layers are float32 and that wide, each filled with one of `fillings` / width,
    and the input, which requires a gradient, is `rows` rows of ones. Returns `loads`,
    `requires_grad`, `corners` (the output's first and last value), and if `metered`, `rise_bytes`,
    the device's peak beyond the input.
    """
    if width is not None:
        # A short warm-up: libraries allocate buffers at first use, which the meter would count.
        _stream_large(student.stream_forward, width, fillings[:2], rows, metered=False)
        return _stream_large(student.stream_forward, width, fillings, rows, metered=metered)
    calls, read_loads = _logged()
    host = HostTier()
    layers: list[_HostLayer] = []
    for i, weight in enumerate(weights or []):
        same = [j for j in range(i) if weights and np.array_equal(weights[j], weight)]
        layers.append(layers[same[0]] if same else _HostLayer(host, i, torch.tensor(weight), calls))
    before = torch.tensor(x)
    given = before.clone()
    try:
        output = student.stream_forward(layers, given)
        gradients_on = torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    return {
        "output": array_of(output),
        "requires_grad": bool(output.requires_grad),
        "gradients_on": gradients_on,
        "loads": read_loads(),
        "x_changed": not torch.equal(given, before) or len(layers) != len(weights or []),
    }


def _logged() -> tuple[Callable[[int], None], Callable[[], list[int]]]:
    """Return a function that logs a number, and one that reads the log; the list is private."""
    notes: list[int] = []
    return (lambda number: notes.append(number)), notes.copy


class _Tanh(nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ self.weight)


class _HostLayer:
    """A layer whose weight is on the host: `load()` brings it to the device as a new module."""

    def __init__(
        self, host: HostTier, number: int, weight: torch.Tensor, note: Callable[[int], None]
    ) -> None:
        self.weight_bytes = weight.nbytes
        handle = host.put(weight)

        def load() -> nn.Module:
            note(number)
            return _Tanh(host.get(handle))

        self.load = load


def _stream_large(
    stream_forward: Callable[..., Any],
    width: int,
    fillings: Sequence[float],
    rows: int,
    *,
    metered: bool,
) -> dict[str, Any]:
    note, read_loads = _logged()
    host = HostTier()
    layers = [
        _HostLayer(host, i, torch.full((width, width), filling / width), note)
        for i, filling in enumerate(fillings)
    ]
    x = torch.ones(rows, width, requires_grad=True)
    outputs: list[torch.Tensor] = []
    with earlier_objects_set_aside():
        figures = rise_of(lambda: outputs.append(stream_forward(layers, x)), x, metered=metered)
    (output,) = outputs
    flat = output.detach().reshape(-1)
    return {
        "loads": read_loads(),
        "requires_grad": bool(output.requires_grad) and output is not x,
        "corners": [flat[0].item(), flat[-1].item()],
        **figures,
    }
