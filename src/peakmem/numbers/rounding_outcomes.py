"""What becomes of numbers in a format: kept, kept with fewer bits, flushed to 0, or too large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peakmem.numbers.formats import NumberFormat, limits, quantize

__all__ = ["RoundingOutcomes", "rounding_outcomes"]


@dataclass(frozen=True)
class RoundingOutcomes:
    """How many nonzero numbers end as what; together they are all of them."""

    zero: int
    subnormal: int
    normal: int
    overflow: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.zero + self.subnormal + self.normal + self.overflow


def rounding_outcomes(
    fmt: NumberFormat, values: npt.NDArray[np.floating], scale: float = 1.0
) -> RoundingOutcomes:
    """Return what becomes of `values` (any shape) times `scale` where the format rounds them.

    Zeros do not count, for nothing can happen to them. What is beyond the largest number overflows,
    whether the format makes infinity, NaN or its largest number of it. Raises ValueError for NaN.

    >>> from peakmem.numbers.formats import FP16
    >>> rounding_outcomes(FP16, np.array([1e-9, 1e-6, 1.0, 1e6]))
    RoundingOutcomes(zero=1, subnormal=1, normal=1, overflow=1)
    >>> rounding_outcomes(FP16, np.array([1e-9, 1e-6]), scale=1024).zero
    0
    """
    numbers = np.abs(np.asarray(values, np.float64)).ravel() * scale
    if np.isnan(numbers).any():
        raise ValueError("values or scale hold NaN, which no format makes a number of")
    numbers = numbers[numbers > 0]
    rounded = quantize(fmt, numbers, "nearest_even")
    edges = limits(fmt)
    saturated = (numbers > edges.max) & (rounded == edges.max) & (fmt.specials == "none")
    overflow = ~np.isfinite(rounded) | saturated
    zero = rounded == 0
    subnormal = (rounded > 0) & (rounded < edges.min_normal)
    normal = ~(overflow | zero | subnormal)
    return RoundingOutcomes(
        zero=int(np.count_nonzero(zero)),
        subnormal=int(np.count_nonzero(subnormal)),
        normal=int(np.count_nonzero(normal)),
        overflow=int(np.count_nonzero(overflow)),
    )
