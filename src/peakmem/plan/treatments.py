"""What becomes of what each stage saved: kept, swapped or recomputed; and the plan for that.

Each stage gets a treatment: "keep" what it saved; "swap" it, out after the next stage's forward, in
again before backward needs it; "recompute" it, together with the recomputed stages just before it;
or "restart", which recomputes too, from its own input, which is then held. Treatments say all but
the times of copies: outs are made in the order of stages, each as soon as it can; ins in the order
of their use, each as early as all steps from there to its use still have room. The model of memory
and of the link is that of `peakmem.plan.simulator`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from peakmem.core.errors import Infeasible
from peakmem.plan.chain import Chain
from peakmem.plan.plan import Copy, Plan, Step
from peakmem.plan.simulator import simulate

__all__ = ["Draft", "Treatment", "Treatments", "draft_of", "infeasible", "treated"]

Treatment = Literal["keep", "swap", "recompute", "restart"]
Treatments = tuple[Treatment, ...]


def treated(
    chain: Chain,
    treatments: Iterable[Treatment],
    budget_bytes: int,
    link_bytes_per_s: float,
    name: str = "treated",
) -> Plan:
    """Return the plan that these treatments, one a stage, come to.

    The last stage is always kept. Raises ValueError for another number of treatments, Infeasible
    where the budget does not do, with the least that would.

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
    return draft.plan(name, budget_bytes, link_bytes_per_s)


@dataclass(frozen=True)
class Draft:
    """Steps, and what is swapped: stage, bytes, the step to go out after, the step of first use.

    `live` is in memory during each step, without what can be on the host then.
    """

    steps: tuple[Step, ...]
    swaps: tuple[tuple[int, int, int, int], ...]  # in the order of use
    live: tuple[int, ...]

    @property
    def least_bytes(self) -> int:
        return max(self.live)

    def plan(self, name: str, budget_bytes: int, link_bytes_per_s: float) -> Plan:
        """Time the copies, each in as early as its room allows."""
        room = [budget_bytes - live for live in self.live]
        outs = [Copy("out", stage, after) for stage, _, after, _ in sorted(self.swaps)]
        ins = []
        earliest = -1  # ins start in this order
        for stage, nbytes, after, use in self.swaps:
            start = use
            while start > max(after + 1, earliest) and room[start - 1] >= nbytes:
                start -= 1
            for step in range(start, use):
                room[step] -= nbytes
            earliest = start
            ins.append(Copy("in", stage, start - 1))
        copies = (*outs, *ins)
        return Plan(name, self.steps, copies, link_bytes_per_s, budget_bytes)


def draft_of(chain: Chain, treatments: Treatments) -> Draft:
    """Return the steps and swaps that these treatments come to, with their bytes."""
    steps = _steps(treatments)
    swaps = []
    live = _live(chain, steps)
    for stage in reversed(range(len(chain))):
        if treatments[stage] == "swap":
            nbytes = chain.stages[stage].saved_bytes
            users = [k for k, s in enumerate(steps) if s.stage == stage + 1]
            after, use = users[0], users[1]  # its forward, and the next that needs this output
            swaps.append((stage, nbytes, after, use))
            for step in range(after + 1, use):
                live[step] -= nbytes
    return Draft(steps, tuple(swaps), tuple(live))


def _steps(treatments: Treatments) -> tuple[Step, ...]:
    """The computations: each run of recomputed stages is done again just before its backward."""
    steps: list[Step] = []
    segments: list[list[int]] = []  # what is computed together before backward goes through it
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
    """Bytes in memory during each step where nothing is swapped."""
    timeline = simulate(chain, Plan("draft", steps)).timeline
    return [event.live_bytes for event in timeline if event.begins]


def infeasible(what: str, budget_bytes: int, least_bytes: int | None) -> Infeasible:
    """Return the error for a budget that is too small, with the least that would do."""
    return Infeasible(
        f"no plan with {what} fits into {budget_bytes:,} bytes; the least budget that would do is "
        f"{least_bytes or 0:,} bytes",
        least_budget_bytes=least_bytes,
    )
