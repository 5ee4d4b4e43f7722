"""Pipeline schedules: which device works on which micro-batch when, and how long devices idle.

A model is cut into stages, one for each device, and a batch into micro-batches. A `Schedule` is a
table of operations: F is a stage's forward of one micro-batch, B its backward, and R a second
forward that recomputes activations. Time is in slots.

Sources: Huang et al. 2019 (GPipe), Narayanan et al. 2021 (PipeDream-Flush, here "1f1b"), Athlur et
al. 2022 (Varuna).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Literal

from peakmem.core.errors import require_whole

__all__ = ["SCHEDULES", "Operation", "Schedule", "schedule", "violations"]

Kind = Literal["F", "B", "R"]
Work = tuple[Kind, int]  # kind, micro-batch from 0
StageWork = tuple[int, Kind, int]  # stage from 0, kind, micro-batch from 0


@dataclass(frozen=True)
class Operation:
    """One stage's work on one micro-batch, from slot `start` to before slot `end`."""

    #: The stage's number, from 0.
    stage: int
    #: "F" for forward, "B" for backward, "R" for recomputation.
    kind: Kind
    #: The micro-batch's number, from 0.
    micro_batch: int
    #: Its first slot.
    start: int
    #: The slot after its last one.
    end: int


@dataclass(frozen=True)
class Schedule:
    """One step's operations in order of their start, for stages 0 to `stages` - 1."""

    #: The number of stages, one on each device.
    stages: int
    #: The number of micro-batches.
    micro_batches: int
    #: All of the step's operations.
    operations: tuple[Operation, ...]

    @cached_property
    def slots(self) -> int:
        """Length of the schedule, from the first operation's start to the last one's end."""
        return max(operation.end for operation in self.operations)

    @property
    def bubble_fraction(self) -> float:
        """Share of all devices' time in which they are idle."""
        busy = sum(operation.end - operation.start for operation in self.operations)
        return 1 - busy / (self.stages * self.slots)

    def of_stage(self, stage: int) -> list[Operation]:
        """Return one device's row of the table."""
        return [operation for operation in self.operations if operation.stage == stage]

    def peak_activations(self) -> list[int]:
        """Return the most micro-batches whose activations each stage holds at once.

        A stage holds them from the run that makes them (R if there is one, else F) until backward
        ends. Micro-batches of which it keeps only the input don't count.
        """
        return [max(_held(self.of_stage(stage))) for stage in range(self.stages)]

    def peak_inputs(self) -> list[int]:
        """Return the most micro-batches whose input each stage holds at once.

        With recomputation, only the inputs wait from forward to backward.
        """
        return [max(_waiting(self.of_stage(stage))) for stage in range(self.stages)]

    def table(self) -> list[list[str]]:
        """Return a row of slots for each stage: "F1" for the first micro-batch, "" for idle."""
        rows = [[""] * self.slots for _ in range(self.stages)]
        for o in self.operations:
            rows[o.stage][o.start : o.end] = [f"{o.kind}{o.micro_batch + 1}"] * (o.end - o.start)
        return rows


def schedule(
    name: str,
    stages: int,
    micro_batches: int,
    *,
    recompute: bool = True,
    forward_slots: int = 1,
    backward_slots: int = 1,
) -> Schedule:
    """Return the schedule of that name: "gpipe", "1f1b" or "varuna".

    With `recompute`, stages keep only inputs, and run a second forward before every backward that
    doesn't follow the first forward at once. Varuna always recomputes.

    Raises ValueError if the name is unknown, a count is below 1, or Varuna shall not recompute.

    >>> [len(row) for row in schedule("gpipe", stages=4, micro_batches=5).table()]
    [20, 20, 20, 20]
    >>> schedule("1f1b", 4, 8, recompute=False).peak_activations()
    [4, 3, 2, 1]
    """
    if name not in SCHEDULES:
        raise ValueError(f"unknown schedule {name!r}; known are {', '.join(SCHEDULES)}")
    for what, value in (("stages", stages), ("micro_batches", micro_batches)):
        require_whole(what, value)
    require_whole("forward_slots", forward_slots)
    require_whole("backward_slots", backward_slots)
    if name == "varuna" and not recompute:
        raise ValueError("Varuna always recomputes, but got recompute=False; use '1f1b'")
    clock = _Clock(stages, micro_batches, recompute, forward_slots, backward_slots)
    clock.run(SCHEDULES[name])
    operations = sorted(clock.done.values(), key=lambda o: (o.start, o.stage))
    return Schedule(stages, micro_batches, tuple(operations))


def violations(operations: tuple[Operation, ...] | list[Operation], stages: int) -> list[str]:
    """Return a sentence for each operation that can't run; empty if the table is valid.

    A forward needs the previous stage's forward of the micro-batch. A backward needs the next
    stage's backward and its own forward. A device does one thing at a time.
    """
    end = {(o.stage, o.kind, o.micro_batch): o.end for o in operations}
    found = []
    for o in operations:
        for needed in _needs(o.stage, o.kind, o.micro_batch, stages):
            if end.get(needed, o.start + 1) > o.start:
                what = f"{needed[1]}{needed[2] + 1} of stage {needed[0] + 1}"
                found.append(
                    f"{o.kind}{o.micro_batch + 1} of stage {o.stage + 1} starts in slot {o.start}, "
                    f"before {what} is done"
                )
    for one, other in combinations(operations, 2):
        first, then = sorted((one, other), key=lambda o: o.start)
        if first.stage == then.stage and then.start < first.end:
            found.append(f"stage {then.stage + 1} does two things in slot {then.start}")
    return found


def _needs(stage: int, kind: Kind, micro_batch: int, stages: int) -> Iterator[StageWork]:
    if kind == "F" and stage > 0:
        yield stage - 1, "F", micro_batch
    if kind != "F":
        yield stage, "F", micro_batch
    if kind == "B" and stage < stages - 1:
        yield stage + 1, "B", micro_batch


def _held(row: list[Operation]) -> list[int]:
    """Return the micro-batches whose activations a stage holds, at each operation's start."""
    again = {o.micro_batch for o in row if o.kind == "R"}
    birth = {o.micro_batch: o.start for o in row if o.kind == "R"}
    birth |= {o.micro_batch: o.start for o in row if o.kind == "F" and o.micro_batch not in again}
    death = {o.micro_batch: o.end for o in row if o.kind == "B"}
    # A first forward whose activations are dropped holds them while it runs.
    passing = {o.start for o in row if o.kind == "F" and o.micro_batch in again}
    return [sum(birth[m] <= o.start < death[m] for m in death) + (o.start in passing) for o in row]


def _waiting(row: list[Operation]) -> list[int]:
    """Return the micro-batches between start of F and end of B, at each operation's start."""
    birth = {o.micro_batch: o.start for o in row if o.kind == "F"}
    death = {o.micro_batch: o.end for o in row if o.kind == "B"}
    return [sum(birth[m] <= o.start < death[m] for m in birth) for o in row]


class _Clock:
    """Runs all devices slot by slot; a policy decides what a free device does next."""

    def __init__(
        self, stages: int, micro_batches: int, recompute: bool, forward: int, backward: int
    ) -> None:
        self.stages, self.micro_batches, self.recompute = stages, micro_batches, recompute
        self.slots: Mapping[Kind, int] = {"F": forward, "B": backward, "R": forward}
        self.now = 0
        self.done: dict[StageWork, Operation] = {}

    def run(self, policy: Callable[[_Clock, int], Work | None]) -> None:
        free_at = [0] * self.stages
        left = self.stages * self.micro_batches  # backwards to come
        while left:
            for stage in reversed(range(self.stages)):  # each device sees the next one's work
                work = policy(self, stage) if free_at[stage] <= self.now else None
                if work is None:
                    continue
                kind, micro_batch = work
                free_at[stage] = self.now + self.slots[kind]
                self.done[stage, kind, micro_batch] = Operation(
                    stage, kind, micro_batch, self.now, free_at[stage]
                )
                left -= kind == "B"
            self.now += 1

    def has(self, stage: int, kind: Kind, micro_batch: int) -> bool:
        """Whether this work has begun."""
        return (stage, kind, micro_batch) in self.done

    def ready(self, stage: int, kind: Kind, micro_batch: int, within: int = 0) -> bool:
        """Whether everything this work needs will be done `within` so many slots."""
        needed = (self.done.get(key) for key in _needs(stage, kind, micro_batch, self.stages))
        return all(o is not None and o.end <= self.now + within for o in needed)

    def next_of(self, stage: int, order: Iterator[Work]) -> Work | None:
        """Return the first work in a fixed order that hasn't begun; None if it can't begin."""
        work = next((w for w in order if not self.has(stage, *w)), None)
        return work if work is not None and self.ready(stage, *work) else None


def _gpipe(clock: _Clock, stage: int) -> Work | None:
    """Run all forwards, then all backwards, the last micro-batch first."""
    return clock.next_of(stage, _gpipe_order(clock))


def _gpipe_order(clock: _Clock) -> Iterator[Work]:
    last = clock.micro_batches - 1
    for m in range(clock.micro_batches):
        yield "F", m
    for m in reversed(range(clock.micro_batches)):
        if clock.recompute and m != last:  # the last micro-batch's activations are still held
            yield "R", m
        yield "B", m


def _one_f_one_b(clock: _Clock, stage: int) -> Work | None:
    """Run as many forwards as there are later stages, then forwards and backwards in turn."""
    return clock.next_of(stage, _one_f_one_b_order(clock, stage))


def _one_f_one_b_order(clock: _Clock, stage: int) -> Iterator[Work]:
    ahead = min(clock.stages - 1 - stage, clock.micro_batches)
    for m in range(ahead):
        yield "F", m
    for m in range(clock.micro_batches):
        if m + ahead < clock.micro_batches:
            yield "F", m + ahead
        follows_at_once = ahead == 0
        if clock.recompute and not follows_at_once:
            yield "R", m
        yield "B", m


def _varuna(clock: _Clock, stage: int) -> Work | None:
    """Prefer a backward whose gradient has arrived, then a forward; else recompute just in time.

    After R, the same micro-batch's B must follow, so that a stage holds one micro-batch's
    activations. The last stage runs each backward right after its forward, and recomputes nothing.
    """
    all_of = range(clock.micro_batches)
    begun = next((m for m in all_of if _rebuilt(clock, stage, m)), None)
    if begun is not None:
        return ("B", begun) if clock.ready(stage, "B", begun) else None
    back = next((m for m in all_of if not clock.has(stage, "B", m)), None)
    if back is not None and clock.ready(stage, "B", back):
        return "R", back
    forward = next((m for m in all_of if not clock.has(stage, "F", m)), None)
    if forward is not None and clock.ready(stage, "F", forward):
        return "F", forward
    in_time = back is not None and clock.ready(stage, "B", back, within=clock.slots["R"])
    return ("R", back) if in_time and back is not None else None


def _rebuilt(clock: _Clock, stage: int, micro_batch: int) -> bool:
    """Whether a stage holds the micro-batch's activations and hasn't used them yet."""
    made: Kind = "F" if stage == clock.stages - 1 else "R"
    return clock.has(stage, made, micro_batch) and not clock.has(stage, "B", micro_batch)


SCHEDULES: Mapping[str, Callable[[_Clock, int], Work | None]] = MappingProxyType(
    {"gpipe": _gpipe, "1f1b": _one_f_one_b, "varuna": _varuna}
)
