"""A plan of recomputation as a film: what every stage holds in memory after each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peakmem.plan.chain import Chain
from peakmem.plan.plan import Plan, Step
from peakmem.plan.simulator import simulate

__all__ = ["Frame", "Held", "frames"]

Held = Literal["nothing", "output", "all"]


@dataclass(frozen=True)
class Frame:
    """One step of a plan."""

    #: The step.
    step: Step
    #: Whether the step repeats a forward.
    again: bool
    #: When the step starts; like `end`, in the chain's unit of time.
    start: float
    #: When the step ends.
    end: float
    #: Bytes in memory while the step runs.
    live_bytes: int
    #: What each stage holds in memory when the step is done.
    held: tuple[Held, ...]


def frames(chain: Chain, plan: Plan) -> tuple[Frame, ...]:
    """Return a frame for each step of a plan. Raises ValueError if the plan has copies.

    >>> from peakmem.plan.chain import Stage
    >>> from peakmem.plan.segments import every_k
    >>> chain = Chain((Stage(1, 2, 30, 10),) * 4)
    >>> [frame.held[0] for frame in frames(chain, every_k(chain, 2))][:3]
    ['output', 'nothing', 'nothing']
    >>> sum(frame.again for frame in frames(chain, every_k(chain, 2)))
    2
    """
    if plan.copies:
        raise ValueError(f"plan {plan.name!r} has copies, but a film shows recomputation only")
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
    """Change what stages hold as the step does (see `plan.Step`)."""
    kind, i = step
    if kind == "backward":
        held[i] = "nothing"
        if i and held[i - 1] == "output":
            held[i - 1] = "nothing"
        return
    held[i] = "all" if kind == "keep" else "output"
    if kind == "drop":
        held[i - 1] = "nothing"
