"""Small figures of large runs for lab 10's probes: sums instead of tensors, and a metered rise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from peakmem.measure.meter import MemoryMeter

__all__ = ["metered_rise", "sums"]


def sums(tensor: Tensor) -> list[npt.NDArray[Any]]:
    """Return the sums along each of the last two axes: little data from every element.

    The elements are weighted, because the plain sum of a softmax's gradients is 0.
    """
    weights = torch.arange(tensor.numel(), dtype=torch.float64).cos_().view(tensor.shape)
    weighted = weights.mul_(tensor.detach())
    return [weighted.sum(axis).flatten().numpy() for axis in (-1, -2)]


def metered_rise(run: Callable[[], object], *inputs: Tensor, metered: bool) -> dict[str, int]:
    """Call `run`; if `metered`, return `rise_bytes`, the rise of live bytes beyond the inputs."""
    if not metered:
        run()
        return {}
    with MemoryMeter("cpu", history=False).track(*inputs) as meter:
        run()
    return {"rise_bytes": meter.peak_bytes - meter.baseline_bytes}
