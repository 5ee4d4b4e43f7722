"""Small figures of large runs: what the probes of lab 4 send instead of whole tensors."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from torch import Tensor

from peakmem.measure.meter import MemoryMeter

__all__ = ["Array", "count_of", "sums"]

Array = npt.NDArray[Any]


def count_of(operator: str, meter: MemoryMeter) -> int:
    """How often the meter saw this operator of torch's."""
    return sum(name == f"aten::{operator}" for name, _ in meter.timeline)


def sums(matrix: Tensor) -> list[Array]:
    """The sums of its rows and of its columns: small, and every element counts."""
    return [matrix.double().sum(dim).numpy() for dim in (1, 0)]
