"""Planners that swap saved tensors to the host and back, alone or along with recomputation.

A plan gives each stage a treatment (`peakmem.plan.treatments`), which fixes everything except the
times of the copies.

For chains of up to `EXHAUSTIVE` stages, the search covers all treatments that could be better, so
its plan is optimal among them. For longer chains it is a heuristic: it starts with plans that swap
the first stages and keep or recompute the others, then improves the best one by changing one stage
at a time.

Source of the combination: Beaumont, Eyraud-Dubois and Shilova (2021), "Efficient combination of
rematerialization and offloading for training DNNs".
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Generator, Iterator
from typing import get_args

from peakmem.core.errors import Infeasible
from peakmem.plan.chain import Chain
from peakmem.plan.plan import Plan, infeasible
from peakmem.plan.rotor import optimal
from peakmem.plan.simulator import simulate
from peakmem.plan.treatments import Treatment, Treatments, draft_of

__all__ = ["joint", "joint_in_pieces", "with_offload"]

EXHAUSTIVE = 8  # stages
_TRIES = 1500  # the most simulations that the search of a longer chain may take
_PIECE = 64  # tries between two yields


def with_offload(chain: Chain, budget_bytes: int, link_bytes_per_s: float) -> Plan:
    """Return a plan that recomputes nothing and swaps stages until everything fits.

    For up to 8 stages, no other choice of stages is quicker; longer chains get a heuristic (see the
    module). `link_bytes_per_s` is in bytes per unit of the chain's times. Raises Infeasible, with
    the smallest sufficient budget, if there is no such plan, and ValueError if the link's speed
    isn't above 0.

    >>> from peakmem.plan.chain import Stage
    >>> chain = Chain((Stage(1, 1, 10, 10),) * 4)
    >>> plan = with_offload(chain, 30, link_bytes_per_s=10)
    >>> simulate(chain, plan)[:2], len(plan.copies)
    ((8.0, 30), 2)
    """
    search = _Search(chain, budget_bytes, link_bytes_per_s, "with offload", ("keep", "swap"))
    for _ in search.pieces():
        pass
    if search.best is None:
        raise infeasible("swaps", budget_bytes, search.least_bytes)
    return search.best


def joint(chain: Chain, budget_bytes: int, link_bytes_per_s: float) -> Plan:
    """Return a plan that recomputes or swaps, stage by stage, whichever is cheaper.

    The plan is never slower than those of `peakmem.plan.optimal` and `with_offload`, which are
    among its candidates. Raises Infeasible, with the smallest sufficient budget, if there is no
    such plan, and ValueError if the link's speed isn't above 0.

    >>> from peakmem.plan.chain import Stage
    >>> chain = Chain((Stage(2, 2, 20, 10), Stage(2, 2, 90, 10), Stage(2, 2, 20, 10)) * 2)
    >>> plans = [planner(chain, 130, 10) for planner in (with_offload, joint)]
    >>> [simulate(chain, plan).makespan for plan in plans], len(plans[1].copies)
    ([38.0, 28.0], 4)
    """
    pieces = joint_in_pieces(chain, budget_bytes, link_bytes_per_s)
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            plan: Plan = end.value
            return plan


def joint_in_pieces(
    chain: Chain, budget_bytes: int, link_bytes_per_s: float
) -> Generator[None, None, Plan]:
    """Search for `joint`'s plan, and return it; yield every few milliseconds.

    A calculator then stays live: a search for 8 stages may take most of a second. Raises as
    `joint` does.
    """
    search = _Search(chain, budget_bytes, link_bytes_per_s, "joint", get_args(Treatment))
    try:
        search.consider(optimal(chain, budget_bytes))
    except Infeasible as error:
        search.least_bytes = error.least_budget_bytes or 0
    with contextlib.suppress(Infeasible):  # its treatments are among the joint ones
        search.consider(with_offload(chain, budget_bytes, link_bytes_per_s))
    yield from search.pieces()
    plan = search.best
    if plan is None:
        raise infeasible("recomputation and swaps", budget_bytes, search.least_bytes)
    return Plan("joint", plan.steps, plan.copies, link_bytes_per_s, budget_bytes)


class _Search:
    """Searches for the quickest treatments; plans given to `consider` compete with them."""

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
        """Keep a plan if it is quicker than the best so far; return whether it is."""
        time = simulate(self.chain, plan).makespan
        if time >= self.best_time:
            return False
        self.best, self.best_time = plan, time
        return True

    def attempt(self, treatments: Treatments) -> bool:
        """Consider treatments, unless they can't be quicker or don't fit; return whether kept."""
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

    def pieces(self) -> Iterator[None]:
        """Search, and yield between two pieces; afterwards `best` is None if nothing fits."""
        n = len(self.chain)
        if n <= EXHAUSTIVE:
            for tries, treatments in enumerate(itertools.product(self.alphabet, repeat=n - 1)):
                if tries % _PIECE == 0:
                    yield
                if not _twice(treatments):
                    self.attempt((*treatments, "keep"))
            return
        current: Treatments | None = None
        for treatments in self.starts():
            current = treatments if self.attempt(treatments) or current is None else current
        improved = True
        while improved and current is not None:
            improved = False
            yield
            for i, treatment in itertools.product(range(n - 1), self.alphabet):
                if len(self.tried) > _TRIES:
                    return
                changed = (*current[:i], treatment, *current[i + 1 :])
                if self.attempt(changed):
                    current, improved = changed, True

    def starts(self) -> Iterator[Treatments]:
        """Yield starting points: the first stages swapped, the others kept or recomputed."""
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
    """Whether other treatments give the same plan: a restart where a segment begins anyway."""
    before = ("keep", *treatments)
    return any(
        a in ("keep", "swap") and b == "restart" for a, b in zip(before, treatments, strict=False)
    )
