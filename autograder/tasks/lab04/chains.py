"""Chains of unequal stages: what a set of kept outputs costs, and which one is best."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Chain", "best_plan", "equal_segments", "peak", "root_segments", "segments", "time"]


@dataclass(frozen=True)
class Chain:
    """Stages, one after another: three lists of equal length."""

    times: Sequence[Any]
    saved: Sequence[int]
    outputs: Sequence[int]

    def __len__(self) -> int:
        return len(self.times)


def segments(n: int, kept: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (first, one past the last) of each segment; the last may be empty."""
    yield from itertools.pairwise([0, *(index + 1 for index in kept), n])


def peak(chain: Chain, kept: Sequence[int]) -> int:
    """The most that is live: outputs kept before a segment, and all that the segment saves."""
    return max(
        sum(chain.outputs[index] for index in kept if index < first) + sum(chain.saved[first:last])
        for first, last in segments(len(chain), kept)
    )


def time(chain: Chain, kept: Sequence[int]) -> Any:
    """All forward times, and once more those of the stages up to the last kept index."""
    return sum(chain.times) + sum(chain.times[: kept[-1] + 1] if kept else [])


def best_plan(
    chain: Chain,
    budget: int,
    *,
    strict: bool = False,
) -> list[int] | None:
    """A plan of least time within the budget, or below it where `strict`; None where none is.

    For each index the least sum of kept outputs that a feasible plan can have there is enough to
    know: less of it never hurts what follows.
    """
    least: dict[int, tuple[int, list[int]]] = {-1: (0, [])}

    def fits(held: int, first: int, last: int) -> bool:
        needed = held + sum(chain.saved[first:last])
        return needed < budget if strict else needed <= budget

    for index in range(len(chain)):
        ways = [
            (held + chain.outputs[index], [*kept, index])
            for before, (held, kept) in least.items()
            if fits(held, before + 1, index + 1)
        ]
        if ways:
            least[index] = min(ways)
    for index, (held, kept) in sorted(least.items(), key=lambda item: time(chain, item[1][1])):
        if fits(held, index + 1, len(chain)):
            return kept
    return None


def equal_segments(chain: Chain, budget: int) -> list[int] | None:
    """The plan of equal segments that takes the least time within the budget."""
    n = len(chain)
    plans = [list(range(k - 1, n - 1, k)) for k in range(1, n + 1)]
    fitting = [kept for kept in plans if peak(chain, kept) <= budget]
    return min(fitting, key=lambda kept: time(chain, kept), default=None)


def root_segments(chain: Chain) -> list[int]:
    """The plan of segments as long as the root of their number, whatever the budget."""
    n = len(chain)
    k = max(round(math.sqrt(n)), 1)
    return list(range(k - 1, n - 1, k))
