"""Rotor: the quickest nested recomputation of a chain of unequal stages, by dynamic programming.

Source: Beaumont, Eyraud-Dubois, Herrmann, Joly and Shilova (2019), "Optimal checkpointing for
heterogeneous chains: how to train deep neural networks with limited memory", section 4, theorem 2.

Given the input of s and the gradient of t's output, stages s to t start in one of two ways. Either
stage s saves everything; then come s + 1 to t, and the backward of s. Or forward runs up to some
stage r - 1 and keeps only that stage's output; then come r to t, and finally s to r - 1, again from
their input. The result is optimal among plans that keep a tensor, once kept, until backward has
used it.

Differences from the paper: memory follows `peakmem.plan.simulator`. So gradients of parameters
count, the gradient of the chain's output counts only once backward has begun, and a partial forward
counts only up to its last stage.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from peakmem.core.errors import Infeasible
from peakmem.plan.chain import Chain
from peakmem.plan.plan import Plan, Step, infeasible
from peakmem.plan.segments import kept_set_optimal
from peakmem.plan.simulator import simulate

__all__ = ["least_peak", "optimal"]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

# (s, t, m) -> how stages s to t start with m slots: the stage r whose input is kept, or None if
# stage s saves everything.
Choice = Callable[[int, int, int], int | None]


def optimal(chain: Chain, budget_bytes: int, slots: int = 500) -> Plan:
    """Return the quickest plan of nested recomputation that stays within the budget.

    Memory is divided into at most `slots` equal slots, and every size is rounded up to whole slots.
    If the budget has no more bytes than slots, the result is exact. Otherwise the plan still stays
    within the budget, but a quicker one may exist. It is never slower than `kept_set_optimal`, and
    if rounding rules every plan out, it is the plan of least peak. Takes O(n^3 slots) time and
    O(n^2 slots) memory. Raises Infeasible, with the smallest sufficient budget, if no plan fits,
    and ValueError if `slots` is below 1.

    >>> from peakmem.plan.chain import Stage
    >>> chain = Chain((Stage(1, 2, 10, 10),) * 8)
    >>> [simulate(chain, optimal(chain, budget)).makespan for budget in (80, 40, 30)]
    [24.0, 30.0, 34.0]
    """
    if slots < 1:
        raise ValueError(f"expected at least 1 slot of memory, but got {slots}")
    table = _Table(_Sizes(chain), budget_bytes, slots)
    plans = [Plan("optimal", table.steps())] if table.feasible else [least_peak(chain)]
    with contextlib.suppress(Infeasible):  # it doesn't round to slots, so it may be quicker
        plans.append(Plan("optimal", kept_set_optimal(chain, budget_bytes).steps))
    runs = [simulate(chain, plan) for plan in plans]
    if runs[0].peak_bytes > budget_bytes:
        raise infeasible("nested recomputation", budget_bytes, runs[0].peak_bytes)
    times = [run.makespan for run in runs]
    return plans[times.index(min(times))]


class _Sizes:
    """The stages' costs as arrays, and the memory that each way to start needs, in bytes."""

    def __init__(self, chain: Chain) -> None:
        stages, n = chain.stages, len(chain)
        self.n, self.input = n, chain.input_bytes
        self.saved = _ints(s.saved_bytes for s in stages)
        self.output = _ints(s.output_bytes for s in stages)
        self.forward_time = np.array([s.forward_time for s in stages])
        self.backward_time = np.array([s.backward_time for s in stages])
        # Gradients that are live, beside saved tensors, while s to t run.
        later = np.cumsum([0, *(s.parameter_gradient_bytes for s in stages[:0:-1])])[::-1]
        self.gradients = _ints(s.gradient_bytes for s in stages) + later
        self.gradients[n - 1] = 0  # the first backward makes it, and counts it there
        self.keeping = self.saved + _ints(s.keep_extra_bytes for s in stages)
        self.going_back = self.gradients + self.saved
        self.going_back += _ints(chain.backward_takes(i) for i in range(n))
        self.passing = self.output + _ints(s.forward_extra_bytes for s in stages)

    def to_keep(self, s: int) -> Ints:
        """Return the bytes needed for s to save everything, for each t from s on."""
        needed: Ints = np.maximum(self.gradients[s:] + self.keeping[s], self.going_back[s])
        return needed

    def to_pass(self, s: int) -> Ints:
        """Return the bytes needed to run s to r - 1 saving nothing, for each r from s + 1 on.

        Gradients come on top.
        """
        held = np.concatenate([[0], self.output[s:-1]])
        peaks: Ints = np.maximum.accumulate(self.passing[s:] + held)
        return peaks


class _Table:
    """The least time for stages s to t with m slots, for all s, t and m."""

    def __init__(self, sizes: _Sizes, budget_bytes: int, slots: int) -> None:
        self.sizes, n = sizes, sizes.n
        free_bytes = budget_bytes - sizes.input
        self.unit = max(1, -(-free_bytes // slots))
        self.all_slots = free_bytes // self.unit
        self.feasible = free_bytes >= 0
        if not self.feasible:
            return
        width = self.all_slots + 1
        self.saved = np.minimum(self.in_slots(sizes.saved), width)
        # Slots that the input of s takes if a plan holds it; the chain's input is always held.
        self.held = np.minimum(self.in_slots(np.concatenate([[0], sizes.output[:-1]])), width)
        self.before = np.concatenate([[0.0], np.cumsum(sizes.forward_time)])
        # ends[t][s] holds the times for s to t, shifted right by the slots of the input of s, plus
        # the time of all forwards before s. So the times of all r, for one s, t and m, are sums of
        # two blocks, which makes the program fast. Single precision is enough to choose by.
        pad = width + int(self.held.max())
        self.ends: list[Floats] = [np.full((t + 1, pad), np.inf, np.float32) for t in range(n)]
        self.fill(width)
        self.feasible = bool(np.isfinite(self.time(0, n - 1, self.all_slots)))

    def fill(self, width: int) -> None:
        """Fill the table from the last stage to the first."""
        n, sizes = self.sizes.n, self.sizes
        sums = np.empty((n, width), np.float32)
        following = np.empty((0, width), np.float32)  # times of s + 1 to t, for t from s + 1 on
        for s in reversed(range(n)):
            times = np.full((n - s, width), np.inf, np.float32)  # of s to t, for t from s on
            to_keep = self.in_slots(sizes.to_keep(s))
            own_time = np.float32(sizes.forward_time[s] + sizes.backward_time[s])
            times[0, to_keep[0] :] = own_time
            free = max(width - int(self.saved[s]), 0)
            times[1:, width - free :] = following[:, :free] + own_time
            to_pass = sizes.to_pass(s)
            for t in range(s, n):
                row = times[t - s]
                row[: to_keep[t - s]] = np.inf
                if t > s:
                    both = np.add(self.ends[t][s + 1 :, :width], times[: t - s], out=sums[: t - s])
                    needed = self.in_slots(to_pass[: t - s] + sizes.gradients[t])
                    np.minimum(row, _least(both, needed) - np.float32(self.before[s]), out=row)
                start = int(self.held[s])
                self.ends[t][s, start : start + width] = row + np.float32(self.before[s])
            following = times

    def in_slots(self, nbytes: Ints) -> Ints:
        return -(-nbytes // self.unit)

    def time(self, s: int, t: int, m: int) -> float:
        return float(self.ends[t][s, m + self.held[s]]) - float(self.before[s])

    def steps(self) -> tuple[Step, ...]:
        """Return the steps of the quickest plan."""
        return _steps(self.sizes.n, self.choose, self.all_slots, self.saved, self.held)

    def choose(self, s: int, t: int, m: int) -> int | None:
        """Return the stage r whose input is kept first, or None if s saves everything."""
        sizes = self.sizes
        best, choice = np.inf, None
        if m >= self.in_slots(sizes.to_keep(s))[t - s] and m >= self.saved[s]:
            best = self.time(s + 1, t, m - int(self.saved[s]))
            best += sizes.forward_time[s] + sizes.backward_time[s]
        needed = self.in_slots(sizes.to_pass(s)[: t - s] + sizes.gradients[t])
        for r in range(s + 1, t + 1):
            if m >= needed[r - s - 1] and m >= self.held[r]:
                time = self.before[r] - self.before[s]
                time += self.time(r, t, m - int(self.held[r])) + self.time(s, r - 1, m)
                if time < best:
                    best, choice = time, r
        return choice


def _least(both: Floats, needed: Ints) -> Floats:
    """Return each column's minimum; row r counts only from column needed[r] on.

    `needed` doesn't decrease.
    """
    least: Floats = both.min(axis=0)
    first, last = np.minimum(needed[[0, -1]], both.shape[1])
    least[:first] = np.inf
    if first < last:
        barred = np.arange(first, last) < needed[:, None]
        least[first:last] = np.where(barred, np.float32(np.inf), both[:, first:last]).min(axis=0)
    return least


def least_peak(chain: Chain) -> Plan:
    """Return the plan of nested recomputation with the least peak, whatever its time.

    >>> from peakmem.plan.chain import Stage
    >>> chain = Chain((Stage(1, 2, 10, 10),) * 8)
    >>> simulate(chain, least_peak(chain)).peak_bytes
    20
    """
    sizes, n = _Sizes(chain), len(chain)
    # Of s to t, beyond the input of s, and with that input.
    peaks, with_input = np.zeros((n, n), np.int64), np.zeros((n, n), np.int64)
    choices = np.full((n, n), -1)
    for s in reversed(range(n)):
        to_keep, to_pass = sizes.to_keep(s), sizes.to_pass(s)
        for t in range(s, n):
            peak = int(to_keep[t - s])
            if t > s:
                peak = max(peak, int(sizes.saved[s] + peaks[s + 1, t]))
                passing = to_pass[: t - s] + sizes.gradients[t]
                ways = np.maximum(with_input[s + 1 : t + 1, t], peaks[s, s:t])
                ways = np.maximum(ways, passing)
                if ways.min() < peak:
                    choices[s, t] = s + 1 + int(ways.argmin())
                    peak = int(ways.min())
            peaks[s, t] = peak
            with_input[s, t] = peak + (sizes.output[s - 1] if s else 0)
    zeros = np.zeros(n, np.int64)

    def choose(s: int, t: int, m: int) -> int | None:
        return int(choices[s, t]) if choices[s, t] > 0 else None

    return Plan("least peak", _steps(n, choose, slots=0, saved=zeros, held=zeros))


def _steps(n: int, choose: Choice, slots: int, saved: Ints, held: Ints) -> tuple[Step, ...]:
    """Return the steps that follow from the choices.

    `saved[s]` and `held[r]` are the slots that a choice takes from the stages after it.
    """
    steps: list[Step] = []
    to_do: list[Step | tuple[int, int, int]] = [(0, n - 1, slots)]  # a stack
    while to_do:
        task = to_do.pop()
        if isinstance(task, Step):
            steps.append(task)
            continue
        s, t, m = task
        r = choose(s, t, m) if s < t else None
        if r is None:
            steps.append(Step("keep", s))
            to_do.append(Step("backward", s))
            if s < t:
                to_do.append((s + 1, t, m - int(saved[s])))
        else:
            steps.append(Step("checkpoint", s))
            steps += [Step("drop", i) for i in range(s + 1, r)]
            to_do += [(s, r - 1, m), (r, t, m - int(held[r]))]
    return tuple(steps)


def _ints(values: object) -> Ints:
    return np.array(list(values), np.int64)  # type: ignore[call-overload]
