"""Probes of lab 4's run_in_segments: the order of calls, and live memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import checkpoint as torch_checkpoint

from peakmem.measure.meter import MemoryMeter
from peakmem.probes import Namespace
from peakmem.probes.arrays import gradient_arrays
from peakmem.probes.lab04.figures import count_of, sums
from peakmem.probes.metering import rise_of
from peakmem.probes.own_work import refuse_calls_from

__all__ = ["run_in_segments", "run_large_layers", "run_layers"]

Call = Callable[..., Any]


def _noting_layers(n: int, columns: int) -> tuple[list[nn.Module], Callable[[], list[int]]]:
    """Return layers, and a function that reads their numbers in the order of calls.

    A layer is tanh(x * scale), which saves its input and its output for backward. Layers have no
    attribute with their number, and refuse to be called by torch's own checkpoint.
    """
    calls: list[int] = []
    numbers: dict[int, int] = {}

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.rand(columns) + 0.5)

        def forward(self, x: Tensor) -> Tensor:
            refuse_calls_from(torch_checkpoint)
            calls.append(numbers.get(id(self), -1))
            return torch.tanh(x * self.scale)

    layers = [Layer() for _ in range(n)]
    numbers.update({id(layer): number for number, layer in enumerate(layers)})
    return list(layers), calls.copy


def run_in_segments(
    student: Namespace,
    container: str = "list",
    large: Mapping[str, int] | None = None,
    metered: bool = True,
    **case: int,
) -> dict[str, Any]:
    """Run layers through the student's `run_in_segments`; see `run_layers`, `run_large_layers`."""
    if large is None:
        return run_layers(student.run_in_segments, container, **case)
    run_large_layers(student.run_in_segments, **{**large, "rows": 2, "columns": 2}, metered=False)
    return run_large_layers(student.run_in_segments, **large, metered=metered)


def run_large_layers(
    run: Call,
    n_layers: int,
    segment_length: int,
    seed: int,
    rows: int,
    columns: int,
    *,
    metered: bool,
) -> dict[str, Any]:
    """Run `run(layers, x, segment_length)` and backward on a list of layers.

    Returns the numbers of the layers in the order of their calls in `forward` and in `backward`;
    `sums` of the rows and columns of the output and of the gradient; and if `metered`,
    `rise_bytes`, the rise of live bytes in both passes.
    """
    torch.manual_seed(seed)
    layers, read_calls = _noting_layers(n_layers, columns)
    x = torch.randn(rows, columns, requires_grad=True)
    found: dict[str, Any] = {}

    def forward_and_backward() -> None:
        out = run(layers, x, segment_length)
        found["forward"] = read_calls()
        found["sums"] = sums(out.detach())
        out.sum().backward()

    found |= rise_of(forward_and_backward, x, nn.ModuleList(layers), metered=metered)
    found["backward"] = read_calls()[len(found["forward"]) :]
    found["sums"] += [] if x.grad is None else sums(x.grad)
    return found


def run_layers(
    run: Call,
    container: str,
    n_layers: int,
    segment_length: int,
    seed: int,
    rows: int,
    columns: int,
) -> dict[str, Any]:
    """Run `run(layers, x, segment_length)` and backward under the meter.

    `container` is "list", "ModuleList" or "Sequential". Returns `sums` of the output's rows and
    columns; `gradients`, such sums of x's gradient followed by the gradient of every layer; the
    numbers of the layers in the order of their calls in `forward` and in `backward`; `operators`,
    how many tanh operators the meter saw in each pass; and `kept_bytes`, the bytes of storages live
    after forward but not before, including the output's.
    """
    torch.manual_seed(seed)
    own, read_calls = _noting_layers(n_layers, columns)
    layers: Any = list(own)
    if container == "ModuleList":
        layers = nn.ModuleList(own)
    elif container == "Sequential":
        layers = nn.Sequential(*own)
    x = torch.randn(rows, columns, requires_grad=True)
    tracked = nn.ModuleList(own)
    with MemoryMeter("cpu").track(x, tracked) as meter:
        out = run(layers, x, segment_length)
        gc.collect(1)  # garbage in cycles doesn't count as saved
    forward = read_calls()
    if list(layers) != own:
        raise ValueError("your function has changed the layers' container: copy it first")
    with MemoryMeter("cpu").track(x, tracked) as after:
        out.sum().backward()
    of_x = [None] if x.grad is None else sums(x.grad)
    scales = gradient_arrays(tracked.parameters())
    return {
        "sums": sums(out.detach()),
        "gradients": [*of_x, *scales],
        "forward": forward,
        "backward": read_calls()[len(forward) :],
        "operators": [count_of("tanh", meter), count_of("tanh", after)],
        "kept_bytes": meter.live_bytes - meter.baseline_bytes,
    }
