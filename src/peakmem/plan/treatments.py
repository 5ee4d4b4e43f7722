"""Treatments of saved tensors: each stage keeps, swaps or recomputes them, which fixes a plan.

A stage's treatment is one of four. "keep" leaves its saved tensors on the device. "swap" sends them
out after the next stage's forward, and in again before backward needs them. "recompute" makes them
again, together with the recomputed stages just before. "restart" recomputes too, but from the
stage's own input, which is then held. Treatments leave only the times of copies open: outs run in
the order of stages, each as soon as it can, and ins in the order of their use, each as early as
there is room from then until its use. Memory and link follow `peakmem.plan.simulator`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from peakmem.plan.chain import Chain
from peakmem.plan.plan import Copy, Plan, Step, infeasible
from peakmem.plan.simulator import simulate

__all__ = ["Swap", "Treatment", "Treatments", "draft_of", "treated"]

Treatment = Literal["keep", "swap", "recompute", "restart"]
Treatments = tuple[Treatment, ...]


def treated(
    chain: Chain,
    treatments: Iterable[Treatment],
    budget_bytes: int,
    link_bytes_per_s: float,
) -> Plan:
    """Return the plan for these treatments, one for each stage.

    The last stage always keeps its tensors. Raises ValueError if the number of treatments isn't the
    number of stages, and Infeasible, with the smallest sufficient budget, if the budget is too
    small.

    >>> from peakmem.plan.chain import Stage
    >>> chain = Chain((Stage(1, 1, 10, 10),) * 3)
    >>> treated(chain, ["swap", "keep", "keep"], 20, link_bytes_per_s=10).copies
    (Copy(kind='out', stage=0, after=1), Copy(kind='in', stage=0, after=3))
    """
    treatments = tuple(treatments)
    if len(treatments) != len(chain):
        raise ValueError(
            f"expected a treatment for each of {len(chain)} stages, but got {len(treatments)}"
        )
    draft = draft_of(chain, (*treatments[:-1], "keep"))
    if draft.least_bytes > budget_bytes:
        raise infeasible("these treatments", budget_bytes, draft.least_bytes)
    return draft.plan("treated", budget_bytes, link_bytes_per_s)


class Swap(NamedTuple):
    """One stage's saved tensors on their way to the host and back."""

    stage: int
    nbytes: int
    #: The step after which they may go out.
    after: int
    #: The step that needs them on the device again.
    use: int


@dataclass(frozen=True)
class Draft:
    """A plan whose copies have no times yet."""

    #: The computations, in order.
    steps: tuple[Step, ...]
    #: In the order of use.
    swaps: tuple[Swap, ...]
    #: Bytes in memory during each step, without those that can be on the host then.
    live: tuple[int, ...]

    @property
    def least_bytes(self) -> int:
        return max(self.live)

    def plan(self, name: str, budget_bytes: int, link_bytes_per_s: float) -> Plan:
        """Return the plan in which each tensor comes back as early as there is room for it."""
        room = [budget_bytes - live for live in self.live]
        outs = [Copy("out", swap.stage, swap.after) for swap in sorted(self.swaps)]
        ins = []
        earliest = -1  # ins start in this order
        for swap in self.swaps:
            start = swap.use
            while start > max(swap.after + 1, earliest) and room[start - 1] >= swap.nbytes:
                start -= 1
            for step in range(start, swap.use):
                room[step] -= swap.nbytes
            earliest = start
            ins.append(Copy("in", swap.stage, start - 1))
        return Plan(name, self.steps, (*outs, *ins), link_bytes_per_s, budget_bytes)


def draft_of(chain: Chain, treatments: Treatments) -> Draft:
    """Return the steps and swaps for these treatments, with their bytes."""
    steps = _steps(treatments)
    swaps = []
    live = _live(chain, steps)
    for stage in reversed(range(len(chain))):
        if treatments[stage] == "swap":
            nbytes = chain.stages[stage].saved_bytes
            users = [k for k, s in enumerate(steps) if s.stage == stage + 1]
            after, use = users[0], users[1]  # its forward, and the next step that reads this output
            swaps.append(Swap(stage, nbytes, after, use))
            for step in range(after + 1, use):
                live[step] -= nbytes
    return Draft(steps, tuple(swaps), tuple(live))


def _steps(treatments: Treatments) -> tuple[Step, ...]:
    """Return the computations: each recomputed segment runs again just before its backward."""
    steps: list[Step] = []
    segments: list[list[int]] = []  # stages that run forward together before their backward
    for i, treatment in enumerate(treatments):
        if treatment in ("keep", "swap"):
            steps.append(Step("keep", i))
            segments.append([i])
        elif treatment == "recompute" and i and treatments[i - 1] in ("recompute", "restart"):
            steps.append(Step("drop", i))
            segments[-1].append(i)
        else:
            steps.append(Step("checkpoint", i))
            segments.append([i])
    for segment in reversed(segments):
        if treatments[segment[0]] in ("recompute", "restart"):
            steps += [Step("keep", i) for i in segment]
        steps += [Step("backward", i) for i in reversed(segment)]
    return tuple(steps)


def _live(chain: Chain, steps: tuple[Step, ...]) -> list[int]:
    """Return the bytes in memory during each step if nothing is swapped."""
    timeline = simulate(chain, Plan("draft", steps)).timeline
    return [event.live_bytes for event in timeline if event.begins]
