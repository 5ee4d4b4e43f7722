"""Checkpointing by a set of kept outputs: each segment between them is recomputed once.

The stages whose outputs are kept cut the chain into segments [a..b]. Forward runs the last segment
with everything saved, and keeps only the last stage's output of every other segment. Backward goes
through the segments from the last to the first, and recomputes each of them before its backward.

If a chain has no gradients and no temporary bytes (lab 4), the peak is the maximum over segments of
output_bytes of the kept stages before a, plus saved_bytes of a to b. The time is the chain's work
time plus forward_time of every stage up to the last kept one. Other chains are counted as
`peakmem.plan.simulator` counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from peakmem.plan.chain import Chain
from peakmem.plan.plan import Plan, Step, infeasible
from peakmem.plan.simulator import simulate

__all__ = ["best_kept_set", "every_k", "keep_all", "kept_set", "kept_set_optimal"]


def keep_all(chain: Chain) -> Plan:
    """Return the plan that recomputes nothing.

    >>> from peakmem.plan.chain import Stage
    >>> keep_all(Chain((Stage(1, 2, 30, 10),))).steps
    (Step(kind='keep', stage=0), Step(kind='backward', stage=0))
    """
    return kept_set(chain, (), name="keep all")


def kept_set(chain: Chain, kept: Iterable[int], name: str = "kept set") -> Plan:
    """Return the plan that keeps the outputs of these stages; each of them ends a segment.

    Raises ValueError unless `kept` are stages before the last one in ascending order.

    >>> from peakmem.plan.chain import Stage
    >>> chain = Chain((Stage(1, 2, 30, 10),) * 3)
    >>> [f"{step.kind} {step.stage}" for step in kept_set(chain, [0]).steps[:3]]
    ['checkpoint 0', 'keep 1', 'keep 2']
    """
    kept = tuple(kept)
    n = len(chain)
    if sorted(set(kept)) != list(kept) or any(not 0 <= i < n - 1 for i in kept):
        raise ValueError(
            f"expected stages in ascending order, each from 0 to {n - 2}, but got {kept}"
        )
    bounds = [-1, *kept, n - 1]
    segments = [(a + 1, b) for a, b in pairwise(bounds)]
    steps: list[Step] = []
    for a, b in segments[:-1]:
        steps += [Step("drop" if i > a else "checkpoint", i) for i in range(a, b + 1)]
    for a, b in reversed(segments):
        steps += [Step("keep", i) for i in range(a, b + 1)]
        steps += [Step("backward", i) for i in range(b, a - 1, -1)]
    return Plan(name, tuple(steps))


def every_k(chain: Chain, k: int) -> Plan:
    """Return the plan with segments of k stages; the last segment may be shorter.

    Source: Chen et al. (2016), "Training deep nets with sublinear memory cost", section 4.1.
    Raises ValueError if k is below 1.

    >>> from peakmem.plan.chain import Stage
    >>> chain = Chain((Stage(1, 2, 10, 10),) * 9)
    >>> [simulate(chain, every_k(chain, k)).peak_bytes for k in (1, 3, 9)]
    [90, 50, 90]
    """
    if k < 1:
        raise ValueError(f"expected segments of at least 1 stage, but got k={k}")
    return kept_set(chain, range(k - 1, len(chain) - 1, k), name=f"every {k}")


def kept_set_optimal(chain: Chain, budget_bytes: int) -> Plan:
    """Return the quickest plan with a set of kept outputs that stays within the budget.

    Raises Infeasible, with the smallest sufficient budget, if there is none.

    >>> from peakmem.plan.chain import Stage
    >>> chain = Chain((Stage(1, 2, 30, 10), Stage(5, 2, 30, 10), Stage(1, 2, 30, 10)))
    >>> simulate(chain, kept_set_optimal(chain, 70))[:2]
    (14.0, 70)
    """
    return kept_set(chain, best_kept_set(chain, budget_bytes), name="kept set, optimal")


def best_kept_set(chain: Chain, budget_bytes: int) -> tuple[int, ...]:
    """Return the stages whose outputs the quickest such plan keeps; () recomputes nothing.

    The time depends only on the last kept stage. So for every stage, find the least sum of kept
    outputs up to it such that all segments before it fit: a smaller sum leaves more room for later
    segments. Takes O(n^2) time. Raises Infeasible as `kept_set_optimal` does.

    >>> from peakmem.plan.chain import Stage
    >>> best_kept_set(Chain((Stage(1, 2, 30, 10),) * 4), budget_bytes=70)
    (1,)
    """
    peaks = [segment_peaks(chain, first) for first in range(len(chain))]

    def peak(a: int, b: int) -> int:
        return peaks[a][b - a]

    kept = _least_recomputed(chain, budget_bytes, peak)
    if kept is not None:
        return kept
    low, high = budget_bytes, simulate(chain, keep_all(chain)).peak_bytes
    while high - low > 1:  # the least budget is above low, at most high
        middle = (low + high) // 2
        enough = _least_recomputed(chain, middle, peak) is not None
        low, high = (low, middle) if enough else (middle, high)
    raise infeasible("a set of kept outputs", budget_bytes, high)


def _least_recomputed(
    chain: Chain, budget_bytes: int, peak: Callable[[int, int], int]
) -> tuple[int, ...] | None:
    """Return the kept set of least time within the budget, or None if nothing fits."""
    n = len(chain)
    sums: dict[int, int] = {-1: 0}  # last kept stage -> least sum of kept outputs
    before: dict[int, int] = {}  # last kept stage -> the stage kept before it
    for b in range(-1, n - 1):
        if b >= 0:
            fits = [a for a in sums if sums[a] + peak(a + 1, b) <= budget_bytes]
            if not fits:
                continue
            before[b] = min(fits, key=sums.__getitem__)
            sums[b] = sums[before[b]] + chain.stages[b].output_bytes
        if sums[b] + peak(b + 1, n - 1) <= budget_bytes:
            kept = [b]  # keeping a later stage recomputes at least as much
            while kept[-1] >= 0:
                kept.append(before[kept[-1]])
            return tuple(kept[-2::-1])
    return None


def segment_peaks(chain: Chain, first: int) -> list[int]:
    """Return the peak bytes of the segments from `first` to each stage from `first` on.

    Kept outputs before the segment come on top. If gradients and temporary bytes are 0, a peak is
    the sum of saved_bytes.

    >>> from peakmem.plan.chain import Stage
    >>> segment_peaks(Chain((Stage(1, 2, 30, 10),) * 4), 1)
    [30, 60, 90]
    """
    n = len(chain)
    later = sum(stage.parameter_gradient_bytes for stage in chain.stages[first:])
    held = saved = 0
    passing = keeping = back = 0  # peaks so far: first forward, second forward, backward
    peaks = []
    for i in range(first, n):
        stage = chain.stages[i]
        later -= stage.parameter_gradient_bytes
        gradients = later + stage.gradient_bytes if i < n - 1 else 0
        passing = max(passing, held + stage.output_bytes + stage.forward_extra_bytes)
        held = stage.output_bytes
        saved += stage.saved_bytes
        keeping = max(keeping, saved + stage.keep_extra_bytes)
        back = max(back, gradients + saved + chain.backward_takes(i))
        first_pass = passing if i < n - 1 else 0  # the last segment has one forward, which saves
        peaks.append(chain.input_bytes + max(first_pass, gradients + keeping, back))
    return peaks
