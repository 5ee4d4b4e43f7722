"""The one simulator of plans: the time and the memory that any plan takes.

It plays by the rules of `peakmem.plan.player`, on a clock that computes when steps and copies end.
"""

from __future__ import annotations

from typing import NamedTuple

from peakmem.plan.chain import Chain
from peakmem.plan.plan import Copy, Plan, Step
from peakmem.plan.player import Event, Player, Stuck

__all__ = ["Simulation", "Span", "simulate"]


class Span(NamedTuple):
    """A step or copy, and when it ran."""

    kind: str
    stage: int
    start: float
    end: float


class Simulation(NamedTuple):
    """A plan's time, its peak, and its timeline."""

    makespan: float
    peak_bytes: int
    #: The beginning and end of every step and copy, in order.
    timeline: tuple[Event, ...]

    @property
    def spans(self) -> tuple[Span, ...]:
        """Every step and copy with its start and end, in the order of their ends."""
        started: dict[tuple[str, int], float] = {}
        found = []
        for event in self.timeline:
            if event.begins:
                started[event.kind, event.stage] = event.time
            else:
                start = started[event.kind, event.stage]
                found.append(Span(event.kind, event.stage, start, event.time))
        return tuple(found)


def simulate(chain: Chain, plan: Plan) -> Simulation:
    """Return a plan's time, its peak memory in bytes, and its timeline.

    Steps run one at a time and in order. A step starts as soon as its operands are on the device
    and it fits into the budget, if the plan has one. Let s(i) and o(i) be the saved and the output
    bytes of stage i, and g(i) the gradient of its output. A forward allocates s(i) or o(i) when it
    starts, and holds its temporary bytes while it runs. A backward allocates g(i - 1), the
    parameters' gradients and its temporary bytes when it starts, and frees s(i), g(i) and the input
    when it ends. The first backward also allocates the gradient of the chain's output.

    One link makes the copies in order, each in s(i) / link. "out" can start only while no step uses
    the stage's saved tensors (so best after the next stage's forward), and frees them when it ends.
    "in" allocates when it starts. If a step and a copy can start at the same time, the step goes
    first. A copy that hasn't started when its stage's backward is done is skipped.

    Raises ValueError if the plan is invalid: it uses a missing tensor, omits a backward, or leaves
    an output in memory. Raises Infeasible if the budget makes it wait forever; for a plan without
    copies, the exception has the smallest sufficient budget.

    >>> from peakmem.plan.chain import Stage
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
    player = Player(chain, plan, SimulatedClock(chain, plan))
    try:
        player.play()
    except Stuck as stuck:
        if plan.copies:
            raise
        raise _with_least_budget(stuck, chain, plan) from None
    return Simulation(player.clock.now, player.peak_bytes, tuple(player.events))


def _with_least_budget(stuck: Stuck, chain: Chain, plan: Plan) -> Stuck:
    least = simulate(chain, Plan(plan.name, plan.steps)).peak_bytes
    return Stuck(f"{stuck}; it needs {least:,} bytes", stuck.player, least_budget_bytes=least)


class SimulatedClock:
    """A simulated clock: every step and copy takes as long as the chain says."""

    def __init__(self, chain: Chain, plan: Plan) -> None:
        self.chain, self.link = chain, plan.link_bytes_per_s
        self.now = 0.0
        self.step_end = self.copy_end = float("inf")  # inf: not running

    def begin_step(self, step: Step) -> None:
        stage = self.chain.stages[step.stage]
        backward = step.kind == "backward"
        self.step_end = self.now + (stage.backward_time if backward else stage.forward_time)

    def begin_copy(self, copy: Copy) -> None:
        assert self.link is not None
        self.copy_end = self.now + self.chain.stages[copy.stage].saved_bytes / self.link

    def wait(self) -> tuple[bool, bool]:
        self.now = min(self.step_end, self.copy_end)
        ended = self.step_end == self.now, self.copy_end == self.now
        self.step_end = float("inf") if ended[0] else self.step_end
        self.copy_end = float("inf") if ended[1] else self.copy_end
        return ended
