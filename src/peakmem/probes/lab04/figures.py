"""Small figures of large runs, which lab 4's probes send instead of whole tensors."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from torch import Tensor

from peakmem.measure.meter import MemoryMeter

__all__ = ["Array", "count_of", "sums"]

Array = npt.NDArray[Any]


def count_of(operator: str, meter: MemoryMeter) -> int:
    """Return how often the meter saw this operator of torch."""
    return sum(name == f"aten::{operator}" for name, _ in meter.timeline)


def sums(matrix: Tensor) -> list[Array]:
    """Return the sums of rows and of columns: little data, but every element contributes."""
    return [matrix.double().sum(dim).numpy() for dim in (1, 0)]
