"""Chains of unequal stages: the cost of a set of kept outputs, and the best set."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from peakmem.core.errors import Infeasible
from peakmem.plan.chain import Chain as LibraryChain
from peakmem.plan.chain import Stage
from peakmem.plan.segments import best_kept_set

__all__ = [
    "Chain",
    "best_plan",
    "equal_segments",
    "in_library",
    "least_budget",
    "peak",
    "root_segments",
    "segments",
    "time",
]


@dataclass(frozen=True)
class Chain:
    """A sequence of stages, as three lists of equal length."""

    #: Each stage's forward time, all in the same unit.
    times: Sequence[Any]
    #: The bytes that each stage saves for backward, its output included.
    saved: Sequence[int]
    #: The bytes of each stage's output.
    outputs: Sequence[int]

    def __len__(self) -> int:
        return len(self.times)


def segments(n: int, kept: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (first, one past the last) for each segment; the last may be empty."""
    yield from itertools.pairwise([0, *(index + 1 for index in kept), n])


def peak(chain: Chain, kept: Sequence[int]) -> int:
    """The peak of live bytes: outputs kept before a segment, plus all that the segment saves."""
    return max(
        sum(chain.outputs[index] for index in kept if index < first) + sum(chain.saved[first:last])
        for first, last in segments(len(chain), kept)
    )


def time(chain: Chain, kept: Sequence[int]) -> Any:
    """All forward times, plus once more those of the stages up to the last kept index."""
    return sum(chain.times) + sum(chain.times[: kept[-1] + 1] if kept else [])


def best_plan(chain: Chain, budget: int) -> list[int] | None:
    """The fastest plan within the budget, or None if no plan fits."""
    try:
        return list(best_kept_set(in_library(chain), budget))
    except Infeasible:
        return None


def least_budget(chain: Chain) -> int:
    """The smallest budget that any plan fits."""
    try:
        best_kept_set(in_library(chain), -1)  # a budget that nothing fits
    except Infeasible as error:
        if error.least_budget_bytes is not None:
            return error.least_budget_bytes
    raise ValueError(f"no budget would do for {chain}")


def in_library(chain: Chain) -> LibraryChain:
    """The chain as the library's planners take it; backward and gradients cost nothing here."""
    rows = zip(chain.times, chain.saved, chain.outputs, strict=True)
    return LibraryChain(tuple(Stage(t, 0, s, o) for t, s, o in rows))


def equal_segments(chain: Chain, budget: int) -> list[int] | None:
    """The plan of equal segments that takes the least time within the budget."""
    n = len(chain)
    plans = [list(range(k - 1, n - 1, k)) for k in range(1, n + 1)]
    fitting = [kept for kept in plans if peak(chain, kept) <= budget]
    return min(fitting, key=lambda kept: time(chain, kept), default=None)


def root_segments(chain: Chain) -> list[int]:
    """The plan whose segments have about the square root of n stages each, whatever the budget."""
    n = len(chain)
    k = max(round(math.sqrt(n)), 1)
    return list(range(k - 1, n - 1, k))
