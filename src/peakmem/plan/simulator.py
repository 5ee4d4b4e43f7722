"""The one simulator of plans: what a plan takes in time and memory, whoever made it.

The rules are those of `peakmem.plan.player`, on a clock that computes when everything ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, get_args

from peakmem.plan.chain import Chain
from peakmem.plan.plan import Copy, CopyKind, Plan, Step
from peakmem.plan.player import Event, Player, Stuck

__all__ = ["Simulation", "Span", "lanes", "simulate"]


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
    """A clock for a plan on paper: every step and copy takes as long as the chain says."""

    def __init__(self, chain: Chain, plan: Plan) -> None:
        self.chain, self.link = chain, plan.link_bytes_per_s
        self.now = 0.0
        self.step_end = self.copy_end = float("inf")  # of what is not under way

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
