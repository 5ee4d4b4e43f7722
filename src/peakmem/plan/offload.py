"""Swapping what stages saved to the host and back, alone or together with recomputation.

Each stage gets a treatment (`peakmem.plan.treatments`), which says all but the times of copies.

Up to `EXHAUSTIVE` stages all treatments are tried, but for those that cannot be better. Of longer
chains, some are: those that swap the first stages, and keep, recompute or thin out the others; and
from the best of them on, changes of one stage at a time, as long as any helps. That is no longer
exact.

The idea that both belong into one plan: Beaumont, Eyraud-Dubois and Shilova (2021), "Efficient
combination of rematerialization and offloading for training DNNs".
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import get_args

from peakmem.core.errors import Infeasible
from peakmem.plan.chain import Chain
from peakmem.plan.plan import Plan
from peakmem.plan.rotor import optimal
from peakmem.plan.simulator import simulate
from peakmem.plan.treatments import Treatment, Treatments, draft_of, infeasible

__all__ = ["joint", "with_offload"]

EXHAUSTIVE = 8  # stages
_TRIES = 1500  # simulations at most, in the search of longer chains


def with_offload(chain: Chain, budget_bytes: int, link_bytes_per_s: float) -> Plan:
    """Return a plan that recomputes nothing and swaps what has to make room.

    Up to 8 stages no choice of stages is quicker; for longer chains see the module. Raises
    Infeasible, with the least budget that would do, where there is no such plan.

    >>> from peakmem.plan.chain import Stage
    >>> chain = Chain((Stage(1, 1, 10, 10),) * 4)
    >>> plan = with_offload(chain, 30, link_bytes_per_s=10)
    >>> simulate(chain, plan)[:2], len(plan.copies)
    ((8.0, 30), 2)
    """
    search = _Search(chain, budget_bytes, link_bytes_per_s, "with offload", ("keep", "swap"))
    plan = search.run()
    if plan is None:
        raise infeasible("swaps", budget_bytes, search.least_bytes)
    return plan


def joint(chain: Chain, budget_bytes: int, link_bytes_per_s: float) -> Plan:
    """Return a plan that recomputes or swaps, stage by stage, whichever is cheaper.

    It is never slower than `peakmem.plan.optimal` or `with_offload`, and their plans are among
    those it chooses from. Raises Infeasible, with the least budget that would do, where there is
    none.

    >>> from peakmem.plan.chain import Stage
    >>> chain = Chain((Stage(2, 2, 20, 10), Stage(2, 2, 90, 10), Stage(2, 2, 20, 10)) * 2)
    >>> plans = [planner(chain, 130, 10) for planner in (with_offload, joint)]
    >>> [simulate(chain, plan).makespan for plan in plans], len(plans[1].copies)
    ([38.0, 28.0], 4)
    """
    search = _Search(chain, budget_bytes, link_bytes_per_s, "joint", get_args(Treatment))
    try:
        search.consider(optimal(chain, budget_bytes))
    except Infeasible as error:
        search.least_bytes = error.least_budget_bytes or 0
    with contextlib.suppress(Infeasible):  # its treatments are among the joint ones
        search.consider(with_offload(chain, budget_bytes, link_bytes_per_s))
    plan = search.run()
    if plan is None:
        raise infeasible("recomputation and swaps", budget_bytes, search.least_bytes)
    return Plan("joint", plan.steps, plan.copies, link_bytes_per_s, budget_bytes)


class _Search:
    """Looks for the quickest treatments; the plans it was told of compete."""

    def __init__(
        self,
        chain: Chain,
        budget_bytes: int,
        link_bytes_per_s: float,
        name: str,
        alphabet: tuple[Treatment, ...],
    ) -> None:
        if not link_bytes_per_s > 0:
            raise ValueError(f"expected link_bytes_per_s above 0, but got {link_bytes_per_s!r}")
        self.chain, self.budget_bytes, self.link = chain, budget_bytes, link_bytes_per_s
        self.name, self.alphabet = name, alphabet
        self.best: Plan | None = None
        self.best_time = math.inf
        self.least_bytes: int | None = None
        self.tried: set[Treatments] = set()

    def consider(self, plan: Plan) -> bool:
        """Take a plan if it is quicker than the best; tell whether it is."""
        time = simulate(self.chain, plan).makespan
        if time >= self.best_time:
            return False
        self.best, self.best_time = plan, time
        return True

    def attempt(self, treatments: Treatments) -> bool:
        """Consider treatments if they can be quicker and fit."""
        if treatments in self.tried:
            return False
        self.tried.add(treatments)
        again = ("recompute", "restart")
        recomputed = sum(
            stage.forward_time
            for stage, treatment in zip(self.chain.stages, treatments, strict=True)
            if treatment in again
        )
        if self.chain.work_time + recomputed >= self.best_time:
            return False
        draft = draft_of(self.chain, treatments)
        self.least_bytes = min(self.least_bytes or draft.least_bytes, draft.least_bytes)
        if draft.least_bytes > self.budget_bytes:
            return False
        return self.consider(draft.plan(self.name, self.budget_bytes, self.link))

    def run(self) -> Plan | None:
        """Search, and return the best plan, or None if nothing fits."""
        n = len(self.chain)
        if n <= EXHAUSTIVE:
            for treatments in itertools.product(self.alphabet, repeat=n - 1):
                if not _twice(treatments):
                    self.attempt((*treatments, "keep"))
            return self.best
        current: Treatments | None = None
        for treatments in self.starts():
            current = treatments if self.attempt(treatments) or current is None else current
        improved = True
        while improved and current is not None:
            improved = False
            for i, treatment in itertools.product(range(n - 1), self.alphabet):
                if len(self.tried) > _TRIES:
                    return self.best
                changed = (*current[:i], treatment, *current[i + 1 :])
                if self.attempt(changed):
                    current, improved = changed, True
        return self.best

    def starts(self) -> Iterator[Treatments]:
        """Treatments to start a search from: the first stages swapped, the others in each way."""
        n = len(self.chain)
        keep: Treatments = ("keep",)
        swap: Treatments = ("swap",)
        rests = [keep * n]
        if "recompute" in self.alphabet:
            for k in range(1, n):
                rests.append(tuple("recompute" if i % k else "restart" for i in range(n)))
        for rest in rests:
            for swapped in range(n):
                for kept in {0, n // 4, n // 2} if len(rests) > 1 else {0}:
                    front = swap * swapped + rest[swapped : n - 1 - kept]
                    yield front + keep * (n - len(front))


def _twice(treatments: tuple[Treatment, ...]) -> bool:
    """Whether the same plan has other treatments too: a restart where a run begins anyway."""
    before = ("keep", *treatments)
    return any(
        a in ("keep", "swap") and b == "restart" for a, b in zip(before, treatments, strict=False)
    )
