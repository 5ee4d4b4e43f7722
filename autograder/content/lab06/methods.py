"""Methods that choose which stages to swap, and the makespans of their schedules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations

from peakmem.core.errors import Infeasible
from peakmem.plan.swapping import Stage, simulate

__all__ = ["best_set", "fewest_bytes", "first_ones", "late", "set_schedule"]

Copies = list[tuple[str, int, int]]


def set_schedule(swapped: Iterable[int], n_stages: int) -> Copies:
    """Return the schedule that swaps these stages: out as soon as possible, in as needed."""
    stages = sorted(swapped)
    back = [("in", i, n_stages - 1) for i in reversed(stages)]
    return [("out", i, i) for i in stages] + back


def _makespan(stages: Sequence[Stage], budget: int, link: float, copies: Copies) -> float:
    """Return the makespan of a schedule, or infinity if it never finishes."""
    try:
        return simulate(stages, budget, link, copies).makespan
    except Infeasible:
        return float("inf")


def first_ones(stages: Sequence[Stage], budget: int, link: float) -> float:
    """Return the makespan of swapping the fewest leading stages that make the chain fit."""
    n = len(stages)
    spans = (_makespan(stages, budget, link, set_schedule(range(k), n)) for k in range(n + 1))
    return next(span for span in spans if span < float("inf"))


def fewest_bytes(stages: Sequence[Stage], budget: int, link: float) -> float:
    """Return the makespan of swapping the set with the fewest bytes that makes the chain fit."""
    n = len(stages)
    for swapped in sorted(
        _every_set(n), key=lambda chosen: sum(stages[i].saved_bytes for i in chosen)
    ):
        span = _makespan(stages, budget, link, set_schedule(swapped, n))
        if span < float("inf"):
            return span
    return float("inf")


def best_set(stages: Sequence[Stage], budget: int, link: float) -> float:
    """Return the least makespan of swapping any set of stages."""
    n = len(stages)
    return min(_makespan(stages, budget, link, set_schedule(s, n)) for s in _every_set(n))


def late(stages: Sequence[Stage], budget: int, link: float) -> float:
    """Return the least makespan of leading stages that come back only when backward waits."""
    n = len(stages)
    back = [("in", i, 2 * n - 2 - i) for i in range(n - 2, -1, -1)]
    schedules = ([("out", i, i) for i in range(k)] + back[n - 1 - k :] for k in range(n))
    return min(_makespan(stages, budget, link, copies) for copies in schedules)


def _every_set(n: int) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(range(n), k) for k in range(n + 1))
