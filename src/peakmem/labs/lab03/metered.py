"""Optimizer steps, backward passes and training runs under the meter."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from peakmem.measure.meter import Measurement, MemoryMeter, measure_call
from peakmem.probes.lab03.leak import parameter_bytes, staged_training

__all__ = [
    "LEAK_P",
    "LEAK_SIZES",
    "SHAPES",
    "metered_adam",
    "metered_backward",
    "metered_step",
    "small_model",
    "step_curve",
    "training_curve",
]

Step = Callable[..., object]

#: Eight equal float32 matrices of 1 MiB each.
SHAPES = [(256, 1024)] * 8

#: The training in two stages whose peak counts, and P, the bytes of its parameters.
LEAK_SIZES = {"width": 512, "n_layers": 8, "n_batches": 6, "seed": 0}
LEAK_P = parameter_bytes(width=512, n_layers=8)


def small_model() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return parameters of `SHAPES`, and a gradient for each."""
    torch.manual_seed(0)
    params = [torch.randn(shape).requires_grad_() for shape in SHAPES]
    return params, [torch.randn(shape) for shape in SHAPES]


def metered_step(step: Step) -> Measurement:
    """Return the meter's report on the first call of `step`, which makes the moments."""
    params, grads = small_model()
    return measure_call(step, params, grads, {}, device="cpu", track=[params, grads])


def metered_adam(**options: Any) -> Measurement:
    """Return the meter's report on the second step of torch's own Adam."""
    params, grads = small_model()
    for param, grad in zip(params, grads, strict=True):
        param.grad = grad
    optimizer = torch.optim.Adam(params, **options)
    optimizer.step()
    return measure_call(optimizer.step, device="cpu", track=[params, grads, optimizer])


def step_curve(**options: Any) -> tuple[list[float], int]:
    """Return the live bytes after each operator of a training step with torch's Adam, in P.

    P is the bytes of all parameters; it is the second step, so the moments exist. The number is
    the first operator's after backward.
    """
    params, _ = small_model()
    optimizer = torch.optim.Adam(params, **options)
    x = torch.ones(1, SHAPES[0][0])

    def backward() -> None:
        sum((x @ param).sum() for param in params).backward()  # type: ignore[union-attr]

    backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    meter = MemoryMeter("cpu").track(params, optimizer)
    with meter:
        backward()
        stepped_from = len(meter.timeline)
        optimizer.step()
    all_bytes = sum(4 * math.prod(shape) for shape in SHAPES)
    return [live / all_bytes for _, live in meter.timeline], stepped_from


def metered_backward(step_in_backward: Callable[..., Any] | None = None) -> int:
    """Return by how many bytes live memory rises in backward through eight weights of 1 MiB."""
    weights = [torch.full((512, 512), 1e-3, requires_grad=True) for _ in range(8)]
    handle = step_in_backward and step_in_backward(weights, lr=0.1)
    x = torch.ones(1, 512)
    for weight in weights:
        x = x @ weight
    found = measure_call(x.sum().backward, device="cpu", track=[weights, x])
    del handle  # hooks may live as long as it does
    return found.rise_bytes


def training_curve(train: Callable[..., Any]) -> list[float]:
    """Return the bytes live after each operator of a training in two stages, in P."""
    with MemoryMeter("cpu") as meter:
        staged_training(train, **LEAK_SIZES)
    return [live / LEAK_P for _, live in meter.timeline]
