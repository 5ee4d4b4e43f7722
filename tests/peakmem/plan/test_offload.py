"""Plans with swaps against exhaustive search over the swapped stages and their times."""

from __future__ import annotations

import contextlib
import itertools
import random

import pytest

from peakmem.core.errors import Infeasible
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.offload import joint, with_offload
from peakmem.plan.plan import Copy, Plan
from peakmem.plan.rotor import optimal
from peakmem.plan.segments import keep_all, kept_set_optimal
from peakmem.plan.simulator import simulate
from peakmem.plan.treatments import treated


def draw_chain(rng: random.Random, n: int) -> Chain:
    def stage() -> Stage:
        output = rng.randint(1, 4)
        more = [rng.randint(0, 2) for _ in range(5)]
        times = float(rng.randint(1, 6)), float(rng.randint(1, 6))
        return Stage(*times, output + rng.randint(0, 12), output, *more)

    return Chain(tuple(stage() for _ in range(n)))


def least_time(chain: Chain, budget_bytes: int, link: float) -> float | None:
    """The least time over every set of swapped stages and every step to start each copy after."""
    n = len(chain)
    steps = keep_all(chain).steps
    found = []
    for size in range(n):
        for stages in itertools.combinations(range(n - 1), size):
            # Out after any forward of a later stage; in after any step from there to the use.
            times = [
                [(out, back) for out in range(i + 1, n) for back in range(out, 2 * n - 2 - i)]
                for i in stages
            ]
            for chosen in itertools.product(*times):
                pairs = list(zip(stages, chosen, strict=True))
                copies = [Copy("out", i, out) for i, (out, _) in pairs]
                copies += [Copy("in", i, back) for i, (_, back) in reversed(pairs)]
                plan = Plan("any", steps, tuple(copies), link, budget_bytes)
                with contextlib.suppress(Infeasible):
                    found.append(simulate(chain, plan).makespan)
    return min(found, default=None)


def draw_budget(rng: random.Random, chain: Chain) -> int:
    top = simulate(chain, keep_all(chain)).peak_bytes
    return rng.randint(top // 3, top)


@pytest.mark.parametrize("seed", range(6))
def test_offload_equals_exhaustive_search(seed: int) -> None:
    rng = random.Random(seed)
    for n in (2, 3, 3, 3, 3, 3, 3, 3, 4):
        chain = draw_chain(rng, n)
        budget, link = draw_budget(rng, chain), rng.choice((1.0, 2.0, 5.0))
        expected = least_time(chain, budget, link)
        if expected is None:
            with pytest.raises(Infeasible) as caught:
                with_offload(chain, budget, link)
            enough = caught.value.least_budget_bytes
            assert enough is not None
            assert enough > budget
            assert least_time(chain, enough - 1, link) is None
            with_offload(chain, enough, link)
        else:
            run = simulate(chain, with_offload(chain, budget, link))
            assert run.makespan == expected, (chain, budget, link)
            assert run.peak_bytes <= budget


@pytest.mark.parametrize("seed", range(4))
def test_the_joint_plan_is_the_best_of_all_treatments(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(3):
        n = rng.randint(2, 5)
        chain = draw_chain(rng, n)
        budget, link = draw_budget(rng, chain), rng.choice((1.0, 3.0))
        found = []
        for treatments in itertools.product(("keep", "swap", "recompute", "restart"), repeat=n - 1):
            with contextlib.suppress(Infeasible):
                plan = treated(chain, (*treatments, "keep"), budget, link)
                found.append(simulate(chain, plan).makespan)
        with contextlib.suppress(Infeasible):
            found.append(simulate(chain, optimal(chain, budget)).makespan)
        if found:
            run = simulate(chain, joint(chain, budget, link))
            assert run.makespan == min(found)
            assert run.peak_bytes <= budget
        else:
            with pytest.raises(Infeasible) as caught:
                joint(chain, budget, link)
            assert caught.value.least_budget_bytes is not None
            enough = simulate(chain, joint(chain, caught.value.least_budget_bytes, link))
            assert enough.peak_bytes <= caught.value.least_budget_bytes


@pytest.mark.parametrize(("seed", "n"), [(1, 6), (2, 7), (3, 12), (4, 24), (5, 24)])
def test_the_joint_plan_is_never_slower_than_either_alone(seed: int, n: int) -> None:
    rng = random.Random(seed)
    chain = draw_chain(rng, n)
    for part in (0.4, 0.6, 0.9):
        budget = int(simulate(chain, keep_all(chain)).peak_bytes * part)
        times = []
        for planner, more in ((kept_set_optimal, ()), (optimal, ()), (with_offload, (2.0,))):
            with contextlib.suppress(Infeasible):
                times.append(simulate(chain, planner(chain, budget, *more)).makespan)
        run = simulate(chain, joint(chain, budget, 2.0))
        assert run.makespan <= min(times)
        assert run.peak_bytes <= budget


def test_both_together_can_be_quicker_than_either_alone() -> None:
    rng = random.Random(1)
    chain = draw_chain(rng, 7)
    budget = int(simulate(chain, keep_all(chain)).peak_bytes * 0.6)
    alone = [optimal(chain, budget), with_offload(chain, budget, 2.0)]
    together = simulate(chain, joint(chain, budget, 2.0)).makespan
    assert together < min(simulate(chain, plan).makespan for plan in alone)


def test_what_is_no_treatment_is_refused() -> None:
    chain = draw_chain(random.Random(0), 3)
    with pytest.raises(ValueError, match="each of 3 stages"):
        treated(chain, ["keep"], 100, 1.0)
    with pytest.raises(ValueError, match="link_bytes_per_s"):
        with_offload(chain, 100, 0.0)
    with pytest.raises(Infeasible, match="smallest budget") as caught:
        joint(chain, 1, 1.0)
    assert caught.value.least_budget_bytes is not None
