"""The rules of playing a plan: where tensors are, how many bytes steps take, and what may start.

Memory holds the chain's input throughout, outputs held for a later forward, saved tensors (outputs
included), the gradient that backward has reached, the parameters' gradients from their stage's
backward on, and a running step's temporary bytes. It leaves weights out.

A clock decides when steps and copies end: `peakmem.plan.simulator` computes the times, and
`peakmem.execute.rehearsal` waits until real work is done.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, NoReturn, Protocol

from peakmem.core.errors import Infeasible
from peakmem.plan.chain import Chain
from peakmem.plan.plan import Copy, Plan, Step, check_plan

__all__ = ["Clock", "Event", "Player", "Stuck"]


class Event(NamedTuple):
    """The beginning or end of a step or copy; `live_bytes` are in memory from then on."""

    time: float
    begins: bool
    kind: str
    stage: int
    live_bytes: int


class Stuck(Infeasible):
    """A plan's next step can never start; `player` has the state at that moment."""

    def __init__(
        self, message: str, player: Player, *, least_budget_bytes: int | None = None
    ) -> None:
        super().__init__(message, least_budget_bytes=least_budget_bytes)
        self.player = player


class Clock(Protocol):
    """Decides when the running step and the running copy end."""

    @property
    def now(self) -> float: ...
    def begin_step(self, step: Step) -> None: ...
    def begin_copy(self, copy: Copy) -> None: ...
    def wait(self) -> tuple[bool, bool]:
        """Advance until a step or a copy ends; return whether the step did, and the copy."""


_Place = Literal["device", "moving", "host"]


class Player:
    """Plays a plan by the rules: tracks where tensors are, what runs, and what may start next."""

    def __init__(self, chain: Chain, plan: Plan, clock: Clock) -> None:
        check_plan(chain, plan)
        self.chain, self.plan, self.clock = chain, plan, clock
        self.saved: dict[int, _Place] = {}  # stage -> place of its saved tensors
        self.outputs: set[int] = set()  # stages of which only the output is held
        self.next_backward = len(chain) - 1
        self.used_bytes = self.peak_bytes = chain.input_bytes
        self.steps_done = self.copies_begun = 0
        self.step: tuple[Step, int] | None = None  # running, with the bytes it frees at its end
        self.copy: Copy | None = None
        self.events: list[Event] = []

    def play(self) -> None:
        """Play the plan to its end. Raises ValueError if it is invalid, Stuck if it blocks."""
        while self.steps_done < len(self.plan.steps):
            self.start_step()
            self.start_copy()
            if self.step is None and self.copy is None:
                raise self.stuck()
            step_ended, copy_ended = self.clock.wait()
            if step_ended:
                self.end_step()
            if copy_ended:
                self.end_copy()
        self.check_end()

    def start_step(self) -> None:
        """Start the next step if it can."""
        if self.step is not None or self.steps_done == len(self.plan.steps):
            return
        step = self.plan.steps[self.steps_done]
        if not self.ready(step):
            return
        rise, change = self.bytes_of(step)
        if self.take(rise):
            self.step = step, rise - change
            self.note(True, step.kind, step.stage)
            self.clock.begin_step(step)

    def ready(self, step: Step) -> bool:
        """Whether a step's operands are on the device. Raises ValueError if they can't ever be."""
        kind, i = step
        used = [] if i == 0 or i - 1 in self.outputs else [i - 1]
        if kind == "backward":
            if i != self.next_backward:
                self.refuse(f"the next backward is that of stage {self.next_backward}")
            used.append(i)
        elif i in self.outputs or i in self.saved:
            self.refuse("its result is in memory already")
        if kind == "drop" and i - 1 not in self.outputs:
            self.refuse("no earlier step holds its input as an output to free; use 'checkpoint'")
        for stage in used:
            if stage not in self.saved:
                missing = "saved tensors are" if stage == i else "input is"
                self.refuse(f"its {missing} not in memory")
        return all(
            self.saved[stage] == "device" for stage in used if stage == i or self.is_read(stage)
        )

    def is_read(self, stage: int) -> bool:
        """Whether the next stage reads its input from this stage's saved tensors."""
        return stage not in self.outputs and self.chain.stages[stage].output_bytes > 0

    def bytes_of(self, step: Step) -> tuple[int, int]:
        """Return the bytes a step takes when it starts, and the net growth when it is done."""
        kind, i = step
        stage = self.chain.stages[i]
        if kind == "keep":
            return stage.saved_bytes + stage.keep_extra_bytes, stage.saved_bytes
        held = self.chain.stages[i - 1].output_bytes if i - 1 in self.outputs else 0
        if kind != "backward":
            given_up = held if kind == "drop" else 0
            return stage.output_bytes + stage.forward_extra_bytes, stage.output_bytes - given_up
        change = self.chain.backward_makes(i) - self.chain.backward_frees(i) - held
        return self.chain.backward_takes(i), change

    def start_copy(self) -> None:
        """Start the next copy if it can; skip late copies if the plan says so."""
        if self.copy is not None:
            return
        copy = self.next_copy()
        while copy is not None and self.plan.skips_late_copies and copy.stage > self.next_backward:
            self.copies_begun += 1
            copy = self.next_copy()
        if copy is None or self.steps_done <= copy.after or self.in_use(copy.stage):
            return
        if self.saved.get(copy.stage) != ("device" if copy.kind == "out" else "host"):
            return
        if copy.kind == "out" or self.take(self.chain.stages[copy.stage].saved_bytes):
            self.saved[copy.stage] = "moving"
            self.copies_begun += 1
            self.copy = copy
            self.note(True, copy.kind, copy.stage)
            self.clock.begin_copy(copy)

    def next_copy(self) -> Copy | None:
        """Return the link's next copy, or None if none is left."""
        copies = self.plan.copies
        return copies[self.copies_begun] if self.copies_begun < len(copies) else None

    def in_use(self, stage: int) -> bool:
        """Whether the running step uses a stage's saved tensors."""
        if self.step is None:
            return False
        step = self.step[0]
        if step.stage == stage:
            return step.kind in ("keep", "backward")
        return step.stage == stage + 1 and self.is_read(stage)

    def end_step(self) -> None:
        """Record the running step's results, and free what it used up."""
        assert self.step is not None
        (kind, i), given_up = self.step
        self.used_bytes -= given_up
        if kind == "keep":
            self.saved[i] = "device"
        elif kind == "backward":
            del self.saved[i]
            self.outputs.discard(i - 1)
            self.next_backward -= 1
        else:
            self.outputs.add(i)
            if kind == "drop":
                self.outputs.remove(i - 1)
        self.step = None
        self.steps_done += 1
        self.note(False, kind, i)

    def end_copy(self) -> None:
        """Record where the running copy's bytes are now."""
        assert self.copy is not None
        kind, i, _ = self.copy
        self.saved[i] = "host" if kind == "out" else "device"
        if kind == "out":
            self.used_bytes -= self.chain.stages[i].saved_bytes
        self.copy = None
        self.note(False, kind, i)

    def take(self, nbytes: int) -> bool:
        budget = self.plan.budget_bytes
        if budget is not None and self.used_bytes + nbytes > budget:
            return False
        self.used_bytes += nbytes
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        return True

    def note(self, begins: bool, kind: str, stage: int) -> None:
        self.events.append(Event(self.clock.now, begins, kind, stage, self.used_bytes))

    def refuse(self, why: str) -> NoReturn:
        step = self.plan.steps[self.steps_done]
        raise ValueError(
            f"step {self.steps_done} of plan {self.plan.name!r}, {step.kind} of stage "
            f"{step.stage}, cannot run: {why}"
        )

    def stuck(self) -> Stuck:
        """Return an error that says which step is blocked, and why."""
        step = self.plan.steps[self.steps_done]
        why = ", and no copy can make room or bring back its operands" if self.plan.copies else ""
        return Stuck(
            f"plan {self.plan.name!r} waits forever at step {self.steps_done}, {step.kind} of "
            f"stage {step.stage}: {self.used_bytes:,} bytes of the budget of "
            f"{self.plan.budget_bytes or 0:,} are taken{why}",
            self,
        )

    def check_end(self) -> None:
        if self.next_backward >= 0:
            raise ValueError(
                f"plan {self.plan.name!r} ends before the backward of stage {self.next_backward}"
            )
        if self.outputs:
            raise ValueError(
                f"plan {self.plan.name!r} leaves the outputs of stages {sorted(self.outputs)} in "
                "memory; add steps that free them"
            )
