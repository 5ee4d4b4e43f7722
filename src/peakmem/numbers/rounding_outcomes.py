"""Outcomes of rounding to a format: how many numbers flush to 0, go subnormal or overflow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peakmem.numbers.formats import NumberFormat, limits, quantize

__all__ = ["RoundingOutcomes", "rounding_outcomes"]


@dataclass(frozen=True)
class RoundingOutcomes:
    """Counts of nonzero numbers by what rounding makes of them."""

    #: Numbers that become 0.
    zero: int
    #: Numbers that become subnormal.
    subnormal: int
    #: Numbers that become normal.
    normal: int
    #: Numbers that are too large for the format.
    overflow: int

    @property
    def total(self) -> int:
        """Count of all nonzero numbers."""
        return self.zero + self.subnormal + self.normal + self.overflow


def rounding_outcomes(
    fmt: NumberFormat, values: npt.NDArray[np.floating], scale: float = 1.0
) -> RoundingOutcomes:
    """Count what rounding makes of `values` (any shape) times `scale`.

    Zeros don't count, because rounding can't change them. A number beyond the largest one
    overflows, whether it becomes infinity, NaN or the largest number. Raises ValueError for NaN.

    >>> from peakmem.numbers.formats import FP16
    >>> rounding_outcomes(FP16, np.array([1e-9, 1e-6, 1.0, 1e6]))
    RoundingOutcomes(zero=1, subnormal=1, normal=1, overflow=1)
    >>> rounding_outcomes(FP16, np.array([1e-9, 1e-6]), scale=1024).zero
    0
    """
    numbers = np.abs(np.asarray(values, np.float64)).ravel() * scale
    if np.isnan(numbers).any():
        raise ValueError("values or scale contain NaN; expected numbers, so drop NaN first")
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
