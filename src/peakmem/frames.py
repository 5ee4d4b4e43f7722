"""A plan of recomputation as a film: after each step, what every stage has in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peakmem.chain import Chain
from peakmem.simulate import Plan, Step, simulate

__all__ = ["Frame", "Held", "frames"]

Held = Literal["nothing", "output", "all"]


@dataclass(frozen=True)
class Frame:
    """One step of a plan.

    Attributes:
        step: what is computed.
        again: it is a forward that ran before.
        start, end: when, in the chain's unit of time.
        live_bytes: in memory while it runs.
        held: what each stage has in memory once it is done.
    """

    step: Step
    again: bool
    start: float
    end: float
    live_bytes: int
    held: tuple[Held, ...]


def frames(chain: Chain, plan: Plan) -> tuple[Frame, ...]:
    """Return a frame for each step of a plan without copies; ValueError for one with copies.

    >>> from peakmem.chain import Stage
    >>> from peakmem.planners import every_k
    >>> chain = Chain((Stage(1, 2, 30, 10),) * 4)
    >>> [frame.held[0] for frame in frames(chain, every_k(chain, 2))][:3]
    ['output', 'nothing', 'nothing']
    >>> sum(frame.again for frame in frames(chain, every_k(chain, 2)))
    2
    """
    if plan.copies:
        raise ValueError(f"plan {plan.name!r} swaps; a film has recomputation only")
    timeline = simulate(chain, plan).timeline
    begins = [event for event in timeline if event.begins]
    ends = [event for event in timeline if not event.begins]
    held: list[Held] = ["nothing"] * len(chain)
    forwards: set[int] = set()
    found = []
    for step, begin, end in zip(plan.steps, begins, ends, strict=True):
        again = step.kind != "backward" and step.stage in forwards
        forwards.add(step.stage)
        _apply(step, held)
        found.append(Frame(step, again, begin.time, end.time, begin.live_bytes, tuple(held)))
    return tuple(found)


def _apply(step: Step, held: list[Held]) -> None:
    """Change what is held as the step does; the rules are those of `simulate.Step`."""
    kind, i = step
    if kind == "backward":
        held[i] = "nothing"
        if i and held[i - 1] == "output":
            held[i - 1] = "nothing"
        return
    held[i] = "all" if kind == "keep" else "output"
    if kind == "drop":
        held[i - 1] = "nothing"
