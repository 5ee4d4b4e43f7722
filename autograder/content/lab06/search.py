"""The least makespan of a swap schedule, proven by exhaustive search.

The search walks through every run that a list of copies can produce in the simulator. When the link
is idle and something has just ended, a copy that can start now may start, or the link stays idle
until the next end. Every list is one such walk: a copy starts when the last thing that it
waited for ends. And every walk is a list: `after` names the step whose end started the copy. Each
stage goes out and comes back at most once.

A walk is cut as soon as a lower bound shows that it can't beat the best one so far.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from peakmem.plan.chain import Stage

__all__ = ["TooHard", "least_makespan", "lower_bound"]

_NOWHERE, _DEVICE, _IN_USE, _MOVING, _HOST, _BACK = range(6)  # _BACK: on the device to stay


class TooHard(Exception):
    """The search met more states than it may visit."""


@dataclass(frozen=True)
class _State:
    """A moment in a schedule."""

    clock: float
    #: The number of compute steps that have ended.
    done: int
    #: When the current step ends; inf if there is none.
    step_end: float
    #: For each stage, where its saved tensors are.
    places: tuple[int, ...]
    #: Bytes in memory.
    used: int
    #: When the current copy ends; inf if there is none.
    copy_end: float
    #: The stage being copied, or -1.
    copying: int
    #: Whether it is being copied to the host.
    copy_out: bool


class _Problem:
    def __init__(self, stages: Sequence[Stage], budget_bytes: int, link_bytes_per_s: float) -> None:
        self.n = len(stages)
        self.budget = budget_bytes
        self.bytes = [stage.saved_bytes for stage in stages]
        self.copy = [stage.saved_bytes / link_bytes_per_s for stage in stages]
        forward = [stage.forward_time for stage in stages]
        backward = [stage.backward_time for stage in stages]
        self.step = forward + backward[::-1]
        # The time of all steps from number k on.
        self.rest = [sum(self.step[k:]) for k in range(2 * self.n + 1)]

    def stage_of(self, step: int) -> int:
        return step if step < self.n else 2 * self.n - 1 - step

    def start(self) -> _State:
        places = (_NOWHERE,) * self.n
        return _State(0.0, 0, math.inf, places, 0, math.inf, -1, False)

    def with_step(self, s: _State) -> _State:
        """The state once the next compute step has started, if it can start now."""
        if s.step_end != math.inf or s.done == 2 * self.n:
            return s
        i = self.stage_of(s.done)
        used = s.used
        if s.done < self.n:
            used += self.bytes[i]
            if used > self.budget:
                return s
        elif s.places[i] not in (_DEVICE, _BACK):
            return s
        return _State(
            s.clock,
            s.done,
            s.clock + self.step[s.done],
            _put(s.places, i, _IN_USE),
            used,
            s.copy_end,
            s.copying,
            s.copy_out,
        )

    def with_copies(self, s: _State) -> Iterator[_State]:
        """Every state in which a copy has started now."""
        if s.copying >= 0:
            return
        for i in range(self.n):
            fits = s.used + self.bytes[i] <= self.budget
            if s.places[i] != _DEVICE and not (s.places[i] == _HOST and fits):
                continue
            out = s.places[i] == _DEVICE
            yield _State(
                s.clock,
                s.done,
                s.step_end,
                _put(s.places, i, _MOVING),
                s.used + (0 if out else self.bytes[i]),
                s.clock + self.copy[i],
                i,
                out,
            )

    def advanced(self, s: _State) -> _State | None:
        """The state when the next step or copy ends; None if nothing is running."""
        clock = min(s.step_end, s.copy_end)
        if clock == math.inf:
            return None
        done, step_end, places, used = s.done, s.step_end, s.places, s.used
        copy_end, copying = s.copy_end, s.copying
        if step_end == clock:
            i = self.stage_of(done)
            if done < self.n:
                places = _put(places, i, _DEVICE)
            else:
                places = _put(places, i, _NOWHERE)
                used -= self.bytes[i]
            done, step_end = done + 1, math.inf
        if copy_end == clock:
            places = _put(places, copying, _HOST if s.copy_out else _BACK)
            used -= self.bytes[copying] if s.copy_out else 0
            copy_end, copying = math.inf, -1
        return _State(clock, done, step_end, places, used, copy_end, copying, s.copy_out)

    def bound(self, s: _State) -> float:
        """No run from this state ends before this."""
        under_way = s.step_end != math.inf
        ready = s.step_end if under_way else s.clock
        next_step = s.done + under_way
        best = ready + self.rest[next_step]
        link = s.clock if s.copying < 0 else s.copy_end
        # Before step k starts, all bytes over the budget must have left.
        need = s.used - (self.bytes[s.copying] if s.copying >= 0 and s.copy_out else 0)
        per_byte = max((c / b for c, b in zip(self.copy, self.bytes, strict=True) if b), default=0)
        for k in range(next_step, self.n):
            need += self.bytes[k]
            if need > self.budget:
                best = max(best, link + (need - self.budget) * per_byte + self.rest[k])
        # Stages on the host must come back in the order of need, each before its backward.
        coming = link
        if s.copying >= 0 and not s.copy_out:
            best = max(best, link + self.rest[2 * self.n - 1 - s.copying])
        on_host = [_HOST] + ([_MOVING] if s.copying >= 0 and s.copy_out else [])
        for i in range(self.n - 1, -1, -1):
            if s.places[i] in on_host:
                coming += self.copy[i]
                best = max(best, coming + self.rest[2 * self.n - 1 - i])
        return best


def _put(places: tuple[int, ...], i: int, place: int) -> tuple[int, ...]:
    return (*places[:i], place, *places[i + 1 :])


def lower_bound(stages: Sequence[Stage], budget_bytes: int, link_bytes_per_s: float) -> float:
    """Return a lower bound on every schedule's time."""
    problem = _Problem(stages, budget_bytes, link_bytes_per_s)
    return problem.bound(problem.start())


def least_makespan(
    stages: Sequence[Stage],
    budget_bytes: int,
    link_bytes_per_s: float,
    *,
    known: float = math.inf,
    most_states: int = 200_000,
) -> float:
    """Return the least makespan of all schedules.

    `known` is a makespan that some schedule reaches, which makes the search faster. Raises TooHard
    if more than `most_states` states would have to be visited.
    """
    problem = _Problem(stages, budget_bytes, link_bytes_per_s)
    best, seen = known, set()
    waiting = [problem.start()]
    while waiting:
        state = problem.with_step(waiting.pop())
        if state.done == 2 * problem.n:
            best = min(best, state.clock)
            continue
        if state in seen or problem.bound(state) >= best:
            continue
        seen.add(state)
        if len(seen) > most_states:
            raise TooHard(f"more than {most_states:,} states")
        for choice in (state, *problem.with_copies(state)):
            after = problem.advanced(choice)
            if after is not None:
                waiting.append(after)
    return best
