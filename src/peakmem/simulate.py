"""A plan as data, and the one simulator that judges plans, whoever made them.

A plan lists what is computed, in order, and what is copied to the host and back meanwhile. The
operations are those of Beaumont et al. (2019), section 3.2, table 1, and copies over one link.

What is in memory: the chain's input, all the time; outputs that are held for a later forward; what
stages saved (their outputs among it); the gradient that backward is at; gradients of parameters,
from their stage's backward on; and, while a step runs, its temporary bytes. Weights are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from peakmem.chain import Chain
from peakmem.errors import Infeasible

__all__ = ["Copy", "Event", "Plan", "Simulation", "Span", "Step", "lanes", "simulate"]

StepKind = Literal["keep", "checkpoint", "drop", "backward"]
CopyKind = Literal["out", "in"]


class Step(NamedTuple):
    """One computation: a forward that keeps more or less, or a backward.

    "keep" runs a forward and keeps all that backward needs (Fall in the paper). "checkpoint" keeps
    the output only, and holds on to the input (Fck). "drop" does so too, and gives its input up
    (Fnone); the input must be an output that an earlier "checkpoint" or "drop" left.
    "backward" needs what a "keep" of the stage left, the stage's input, and the gradient of its
    output; it gives up all three.
    """

    kind: StepKind
    stage: int


class Copy(NamedTuple):
    """A copy of what a stage's "keep" left: "out" to the host, or "in" from there.

    It may start once step number `after` of the plan is done; -1 is at once.
    """

    kind: CopyKind
    stage: int
    after: int


@dataclass(frozen=True)
class Plan:
    """What to compute, in which order, and what to copy meanwhile.

    `link_bytes_per_s` is the speed of the link, for plans with copies. Where `budget_bytes` is
    given, what would exceed it waits until a copy has made room.

    >>> Plan("one stage", (Step("keep", 0), Step("backward", 0))).copies
    ()
    """

    name: str
    steps: tuple[Step, ...]
    copies: tuple[Copy, ...] = ()
    link_bytes_per_s: float | None = None
    budget_bytes: int | None = None


class Event(NamedTuple):
    """Something begins or ends; `live_bytes` are in memory from that moment on."""

    time: float
    begins: bool
    kind: str
    stage: int
    live_bytes: int


class Span(NamedTuple):
    """A step or copy, and when it ran."""

    kind: str
    stage: int
    start: float
    end: float


class Simulation(NamedTuple):
    """What a plan comes to; `timeline` has the begin and end of every step and copy, in order."""

    makespan: float
    peak_bytes: int
    timeline: tuple[Event, ...]

    @property
    def memory(self) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Times, and the bytes live from each on, for `peakmem.plots.memory_over_time`."""
        return tuple(e.time for e in self.timeline), tuple(e.live_bytes for e in self.timeline)

    @property
    def spans(self) -> tuple[Span, ...]:
        """Every step and copy with its start and end, in order of its end."""
        started: dict[tuple[str, int], float] = {}
        found = []
        for event in self.timeline:
            if event.begins:
                started[event.kind, event.stage] = event.time
            else:
                start = started[event.kind, event.stage]
                found.append(Span(event.kind, event.stage, start, event.time))
        return tuple(found)


def lanes(spans: Iterable[Span]) -> dict[str, list[tuple[str, str, float, float]]]:
    """Return spans, simulated or real, as `peakmem.plots.gantt` draws them: compute and link.

    >>> lanes([Span("keep", 0, 0.0, 1.0)])
    {'compute': [('keep', '0', 0.0, 1.0)], 'link': []}
    """
    found: dict[str, list[tuple[str, str, float, float]]] = {"compute": [], "link": []}
    for kind, stage, start, end in spans:
        lane = "link" if kind in get_args(CopyKind) else "compute"
        found[lane].append((kind, str(stage), start, end))
    return found


def simulate(chain: Chain, plan: Plan) -> Simulation:
    """Return the time a plan takes, its peak of memory, and its timeline.

    Steps run one at a time, in order, each as soon as what it needs is on the device and it fits
    into the budget, if the plan has one. With f(i), b(i), s(i), o(i) the times and bytes of stage
    i, and g(i) the gradient of its output: a forward takes s(i) or o(i) as it starts, and its
    temporary bytes while it runs. Backward takes g(i - 1), the parameters' gradients and its
    temporary bytes as it starts, and gives up s(i), g(i) and the input as it ends. The first
    backward makes the gradient of the chain's output as it starts.

    One link makes the copies in order, each in s(i) / link. "out" starts while no step uses what
    the stage saved, so the next stage's forward had better come first; it frees that as it ends.
    "in" takes room as it starts. Where a step and a copy can start at the same time, the step goes
    first. Copies that have not started when the backward of their stage is done never do.

    Raises ValueError for a plan that is none (it uses what is not there, leaves out a backward, or
    leaves an output behind), Infeasible where the budget makes it wait for ever, with the least
    budget that would do for a plan without copies.

    >>> from peakmem.chain import Stage
    >>> chain = Chain((Stage(1, 2, 30, 10), Stage(1, 2, 30, 10)))
    >>> keep = Plan("keep all", (Step("keep", 0), Step("keep", 1)) +
    ...             (Step("backward", 1), Step("backward", 0)))
    >>> simulate(chain, keep)[:2]
    (6.0, 60)
    >>> again = Plan("again", (Step("checkpoint", 0), Step("keep", 1), Step("backward", 1)) +
    ...              (Step("keep", 0), Step("backward", 0)))
    >>> simulate(chain, again)[:2]
    (7.0, 40)
    """
    play = _Play(chain, plan)
    while play.steps_done < len(plan.steps):
        play.start_step()
        play.start_copy()
        play.advance()
    play.check_end()
    return Simulation(play.clock, play.peak_bytes, tuple(play.events))


_Place = Literal["device", "moving", "host"]


class _Play:
    """The state of a run: the clock, what is where, and what is under way."""

    def __init__(self, chain: Chain, plan: Plan) -> None:
        self.chain, self.plan = chain, plan
        _check(chain, plan)
        self.saved: dict[int, _Place] = {}  # stage -> where what it saved is
        self.outputs: set[int] = set()  # stages whose output alone is there
        self.next_backward = len(chain) - 1
        self.clock = 0.0
        self.used_bytes = self.peak_bytes = chain.input_bytes
        self.steps_done = self.copies_begun = 0
        self.step: tuple[Step, float, int] | None = None  # with its end, and the bytes it gives up
        self.copy: tuple[Copy, float] | None = None
        self.events: list[Event] = []

    def start_step(self) -> None:
        """Start the next step if it can."""
        if self.step is not None or self.steps_done == len(self.plan.steps):
            return
        step = self.plan.steps[self.steps_done]
        if not self.ready(step):
            return
        rise, change = self.bytes_of(step)
        if self.take(rise):
            stage = self.chain.stages[step.stage]
            seconds = stage.backward_time if step.kind == "backward" else stage.forward_time
            self.step = step, self.clock + seconds, rise - change
            self.note(True, step.kind, step.stage)

    def ready(self, step: Step) -> bool:
        """Whether what a step uses is on the device; ValueError where it never will be."""
        kind, i = step
        used = [] if i == 0 or i - 1 in self.outputs else [i - 1]
        if kind == "backward":
            if i != self.next_backward:
                self.refuse(f"the next backward is that of stage {self.next_backward}")
            used.append(i)
        elif i in self.outputs or i in self.saved:
            self.refuse("what it would make is there already")
        if kind == "drop" and i - 1 not in self.outputs:
            self.refuse("its input is no output to give up; use 'checkpoint'")
        for stage in used:
            if stage not in self.saved:
                what = "what that stage saved" if stage == i else "its input"
                self.refuse(f"{what} is not there")
        return all(self.saved[stage] == "device" for stage in used)

    def bytes_of(self, step: Step) -> tuple[int, int]:
        """What a step takes as it starts, and by how much memory has grown when it is done."""
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
        """Start the next copy if it can; leave those out that come too late."""
        copies = self.plan.copies
        while self.copies_begun < len(copies) and copies[self.copies_begun][1] > self.next_backward:
            self.copies_begun += 1
        if self.copy is not None or self.copies_begun == len(copies):
            return
        copy = self.plan.copies[self.copies_begun]
        i, link = copy.stage, self.plan.link_bytes_per_s
        needed: _Place = "device" if copy.kind == "out" else "host"
        if self.steps_done <= copy.after or self.saved.get(i) != needed or self.in_use(i):
            return
        nbytes = self.chain.stages[i].saved_bytes
        if copy.kind == "out" or self.take(nbytes):
            assert link is not None
            self.saved[i] = "moving"
            self.copies_begun += 1
            self.copy = copy, self.clock + nbytes / link
            self.note(True, copy.kind, i)

    def in_use(self, stage: int) -> bool:
        """Whether the step under way uses what a stage saved."""
        if self.step is None:
            return False
        step = self.step[0]
        reads_output = step.stage == stage + 1 and stage not in self.outputs
        return reads_output or (step.kind in ("keep", "backward") and step.stage == stage)

    def advance(self) -> None:
        """Go to the next moment at which anything ends, and end it."""
        ends = [running[1] for running in (self.step, self.copy) if running is not None]
        if not ends:
            raise self.stuck()
        self.clock = min(ends)
        if self.step is not None and self.step[1] == self.clock:
            self.end_step(*self.step)
        if self.copy is not None and self.copy[1] == self.clock:
            copy, _ = self.copy
            self.saved[copy.stage] = "host" if copy.kind == "out" else "device"
            freed = self.chain.stages[copy.stage].saved_bytes if copy.kind == "out" else 0
            self.used_bytes -= freed
            self.copy = None
            self.note(False, copy.kind, copy.stage)

    def end_step(self, step: Step, _: float, given_up: int) -> None:
        """Put what a step made where it belongs, and give up what it used up."""
        kind, i = step
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

    def take(self, nbytes: int) -> bool:
        budget = self.plan.budget_bytes
        if budget is not None and self.used_bytes + nbytes > budget:
            return False
        self.used_bytes += nbytes
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        return True

    def note(self, begins: bool, kind: str, stage: int) -> None:
        self.events.append(Event(self.clock, begins, kind, stage, self.used_bytes))

    def refuse(self, why: str) -> None:
        step = self.plan.steps[self.steps_done]
        raise ValueError(
            f"step {self.steps_done} of plan {self.plan.name!r}, {step.kind} of stage "
            f"{step.stage}, cannot run: {why}"
        )

    def stuck(self) -> Infeasible:
        """Say which step waits for ever, and for how much."""
        step = self.plan.steps[self.steps_done]
        what = f"plan {self.plan.name!r} waits for ever at step {self.steps_done}, {step.kind} of "
        what += f"stage {step.stage}"
        if self.plan.copies:
            return Infeasible(
                f"{what}: {self.used_bytes:,} bytes of the budget of "
                f"{self.plan.budget_bytes or 0:,} are taken, and no copy can make room or bring "
                "back what it needs"
            )
        least = simulate(self.chain, Plan(self.plan.name, self.plan.steps)).peak_bytes
        return Infeasible(
            f"{what}: the budget is {self.plan.budget_bytes:,} bytes, and it needs {least:,}",
            least_budget_bytes=least,
        )

    def check_end(self) -> None:
        if self.next_backward >= 0:
            raise ValueError(
                f"plan {self.plan.name!r} ends before the backward of stage {self.next_backward}"
            )
        if self.outputs:
            raise ValueError(
                f"plan {self.plan.name!r} leaves the outputs of stages {sorted(self.outputs)} "
                "behind; end with a step that gives them up"
            )


def _check(chain: Chain, plan: Plan) -> None:
    kinds: tuple[str, ...] = (*get_args(StepKind), *get_args(CopyKind))
    entries: list[Step | Copy] = [*plan.steps, *plan.copies]
    for entry in entries:
        if not 0 <= entry.stage < len(chain):
            raise ValueError(f"{entry} is of a stage that is not one of 0 to {len(chain) - 1}")
        if entry.kind not in kinds:
            raise ValueError(f"{entry} is of an unknown kind; known are {', '.join(kinds)}")
    if plan.copies and not (plan.link_bytes_per_s and plan.link_bytes_per_s > 0):
        raise ValueError(
            f"a plan with copies needs link_bytes_per_s above 0, but got {plan.link_bytes_per_s!r}"
        )
    if plan.budget_bytes is not None and chain.input_bytes > plan.budget_bytes:
        raise Infeasible(
            f"the chain's input alone takes {chain.input_bytes:,} bytes of a budget of "
            f"{plan.budget_bytes:,}"
        )
