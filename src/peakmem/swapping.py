"""Swapping on paper: compute steps, one link to the host, a budget, and a clock.

A training step of n stages has 2n compute steps: forward 0 to n-1, then backward n-1 to 0. Between
its forward and its backward, what a stage saved can wait on the host. A schedule says which copies
the link makes, in which order; `simulate` plays it and says how long everything takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from peakmem.errors import Infeasible

__all__ = ["Run", "Span", "Stage", "SwapStage", "simulate", "step_name"]


class SwapStage(Protocol):
    """What the simulator asks of a stage; times are in any one unit, such as seconds."""

    @property
    def forward_time(self) -> float: ...
    @property
    def backward_time(self) -> float: ...
    @property
    def saved_bytes(self) -> int: ...


@dataclass(frozen=True)
class Stage:
    """One stage of a chain: how long its steps take, and what its forward saves."""

    forward_time: float
    backward_time: float
    saved_bytes: int


@dataclass(frozen=True)
class Span:
    """A compute step ("forward", "backward") or copy ("out", "in") and when it ran."""

    kind: str
    stage: int
    start: float
    end: float


@dataclass(frozen=True)
class Run:
    """What came of a schedule: the end of the last compute step, and every step and copy."""

    makespan: float
    peak_bytes: int
    steps: tuple[Span, ...]
    copies: tuple[Span, ...]


def step_name(step: int, n_stages: int) -> str:
    """Return what compute step number `step` is.

    >>> step_name(1, 3), step_name(3, 3)
    ('forward 1', 'backward 2')
    """
    kind, stage = _step(step, n_stages)
    return f"{kind} {stage}"


def simulate(
    stages: Sequence[SwapStage],
    budget_bytes: int,
    link_bytes_per_s: float,
    schedule: Iterable[Sequence[Any]],
) -> Run:
    """Play a schedule, a list of copies (kind, stage, after), and return the run.

    Compute steps run one at a time and in order, each as soon as it can. Forward i takes the
    stage's saved_bytes as it starts. Backward i needs them on the device and frees them as it ends.
    The link makes one copy at a time, in the order of the list; each takes saved_bytes /
    link_bytes_per_s. "out" needs the bytes on the device, not in use, and frees them as it ends;
    "in" needs them on the host and takes them as it starts. A copy starts once compute step `after`
    is done (-1: at once). What would exceed the budget waits; where a step and a copy could start
    at the same time, the step goes first. Copies that have not started when the last step ends
    never do.

    Raises Infeasible where the steps never finish, ValueError for what is no schedule.

    >>> stages = [Stage(1, 2, 10), Stage(1, 2, 10)]
    >>> simulate(stages, 20, 10, []).makespan
    6.0
    >>> simulate(stages, 10, 10, [("out", 0, 0), ("in", 0, 2)]).makespan
    8.0
    """
    play = _Play(stages, budget_bytes, link_bytes_per_s, _checked(schedule, len(stages)))
    while play.steps_done < 2 * len(stages):
        play.start_step()
        play.start_copy()
        play.advance()
    return Run(play.clock, play.peak_bytes, tuple(play.steps), tuple(play.copies))


_Place = Literal["nowhere", "device", "in use", "moving", "host"]


class _Play:
    """The state of a run: the clock, where each stage's bytes are, and what is under way."""

    def __init__(
        self,
        stages: Sequence[SwapStage],
        budget_bytes: int,
        link_bytes_per_s: float,
        schedule: list[tuple[str, int, int]],
    ) -> None:
        self.stages, self.budget_bytes, self.link = stages, budget_bytes, link_bytes_per_s
        self.waiting = schedule[::-1]  # the next copy is the last
        self.places: list[_Place] = ["nowhere"] * len(stages)
        self.clock = 0.0
        self.used_bytes = self.peak_bytes = self.steps_done = 0
        self.step: Span | None = None  # under way
        self.copy: Span | None = None
        self.steps: list[Span] = []
        self.copies: list[Span] = []

    def start_step(self) -> None:
        if self.step is not None:
            return
        kind, i = _step(self.steps_done, len(self.stages))
        stage = self.stages[i]
        if kind == "forward":
            if not self._take(stage.saved_bytes):
                return
            seconds = stage.forward_time
        else:
            if self.places[i] != "device":
                return
            seconds = stage.backward_time
        self.places[i] = "in use"
        self.step = Span(kind, i, self.clock, self.clock + seconds)

    def start_copy(self) -> None:
        if self.copy is not None or not self.waiting:
            return
        kind, i, after = self.waiting[-1]
        nbytes = self.stages[i].saved_bytes
        if self.steps_done <= after or self.places[i] != ("device" if kind == "out" else "host"):
            return
        if kind == "in" and not self._take(nbytes):
            return
        self.waiting.pop()
        self.places[i] = "moving"
        self.copy = Span(kind, i, self.clock, self.clock + nbytes / self.link)

    def advance(self) -> None:
        """Go to the next moment at which anything ends, and end it."""
        ends = [span.end for span in (self.step, self.copy) if span is not None]
        if not ends:
            raise Infeasible(self._why_stuck())
        self.clock = min(ends)
        if self.step is not None and self.step.end == self.clock:
            forward = self.step.kind == "forward"
            self.places[self.step.stage] = "device" if forward else "nowhere"
            self.used_bytes -= 0 if forward else self.stages[self.step.stage].saved_bytes
            self.steps.append(self.step)
            self.steps_done += 1
            self.step = None
        if self.copy is not None and self.copy.end == self.clock:
            out = self.copy.kind == "out"
            self.places[self.copy.stage] = "host" if out else "device"
            self.used_bytes -= self.stages[self.copy.stage].saved_bytes if out else 0
            self.copies.append(self.copy)
            self.copy = None

    def _take(self, nbytes: int) -> bool:
        if self.used_bytes + nbytes > self.budget_bytes:
            return False
        self.used_bytes += nbytes
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        return True

    def _why_stuck(self) -> str:
        n = len(self.stages)
        kind, i = _step(self.steps_done, n)
        if kind == "forward":
            why = (
                f"it needs {self.stages[i].saved_bytes:,} bytes, and {self.used_bytes:,} of the "
                f"budget of {self.budget_bytes:,} are taken"
            )
        else:
            why = f"what stage {i} saved is on the host"
        return f"{kind} {i} waits for ever from {self.clock:g} on: {why}; {self._why_link_idle()}"

    def _why_link_idle(self) -> str:
        if not self.waiting:
            return "no copy is left in the list that would help"
        kind, i, after = self.waiting[-1]
        if self.steps_done <= after:
            why = f"step {after}, {step_name(after, len(self.stages))}, is not done"
        elif kind == "in" and self.places[i] == "host":
            why = f"there is no room for {self.stages[i].saved_bytes:,} bytes"
        else:
            why = f"these bytes are not on the {'device' if kind == 'out' else 'host'}"
        return f"the next copy, ({kind!r}, {i}, {after}), cannot start: {why}"


def _step(step: int, n_stages: int) -> tuple[str, int]:
    return ("forward", step) if step < n_stages else ("backward", 2 * n_stages - 1 - step)


def _checked(schedule: Iterable[Sequence[Any]], n_stages: int) -> list[tuple[str, int, int]]:
    checked = []
    for entry in schedule:
        try:
            kind, stage, after = entry
            stage, after = int(stage), int(after)
        except (TypeError, ValueError):
            raise ValueError(
                f"expected each copy as (kind, stage, after), such as ('out', 0, 0), but got "
                f"{entry!r}"
            ) from None
        if kind not in ("out", "in"):
            raise ValueError(f"the kind of {entry!r} is neither 'out' nor 'in'")
        if not 0 <= stage < n_stages:
            raise ValueError(f"the stage of {entry!r} is not one of 0 to {n_stages - 1}")
        if not -1 <= after < 2 * n_stages:
            raise ValueError(
                f"`after` of {entry!r} is not -1 or a compute step, 0 to {2 * n_stages - 1}"
            )
        checked.append((kind, stage, after))
    return checked
