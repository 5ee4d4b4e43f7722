"""Lab 6: the least time of a joint plan against the library's planner, and the judge's verdicts."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from autograder.content.lab06.joint import least_time, plan_joint
from autograder.model.judge import judge
from autograder.model.task import Answer, Case, Verdict
from peakmem.core.errors import Infeasible
from peakmem.labs.lab06 import simulate_plan
from peakmem.plan import joint, kept_set_optimal, with_offload
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.simulator import simulate


@cache
def cases() -> list[Case]:
    return plan_joint.cases(np.random.default_rng(3))


def _problem(case: Case) -> tuple[Chain, int, float]:
    stages, budget, link = case.inputs["calls"][0]
    return Chain(tuple(Stage(**stage) for stage in stages)), budget, link


def _planned(planner: Any, *problem: Any) -> float:
    try:
        return simulate(problem[0], planner(*problem)).makespan
    except Infeasible:
        return math.inf


@pytest.mark.parametrize("seed", range(4))
def test_the_least_time_is_bounded_by_the_librarys_planners(seed: int) -> None:
    for case in plan_joint.cases(np.random.default_rng(seed)):
        chain, budget, link = _problem(case)
        least = least_time(chain, budget, link)
        assert least == case.secret["least"] or case.secret["least"] == chain.work_time
        # `joint` may restart a segment as well, so it is never slower; swaps alone never quicker.
        assert _planned(joint, chain, budget, link) <= least + 1e-9
        assert least_time(chain, budget, link, ("keep", "swap")) == pytest.approx(
            _planned(with_offload, chain, budget, link)
        )
        assert least <= least_time(chain, budget, link, ("keep", "recompute"))


def test_recomputation_alone_is_lab_4s_when_copies_take_for_ever() -> None:
    chain = Chain((Stage(1, 2, 24, 8),) * 4)
    (plan, budget) = kept_set_optimal(chain, 64), 64
    slow = least_time(chain, budget, 1e-6)
    assert slow == least_time(chain, budget, 1e-6, ("keep", "recompute"))
    assert simulate(chain, plan).makespan <= slow


def _verdict(case: Case, value: Any) -> Verdict:
    return judge(plan_joint, [case], [Answer([("value", value)])])


def test_each_part_has_its_own_bound() -> None:
    near = next(case for case in cases() if _problem(case)[0].stages[0].forward_time == 10)
    chain, budget, link = _problem(near)
    fitting = {}
    for number in range(3 ** (len(chain) - 1)):
        plan = ["keep"] * len(chain)
        for i in range(len(chain) - 1):
            plan[i] = ("keep", "recompute", "swap")[number // 3**i % 3]
        try:
            run = simulate_plan(chain.stages, plan, budget, link)
        except Infeasible:
            assert _verdict(near, plan).points == 0
            continue
        fitting[run.makespan] = plan
    assert _verdict(near, fitting[min(fitting)]).points == 4
    assert _verdict(near, fitting[max(fitting)]).points == 2
    between = [t for t in fitting if near.secret["least"] < t <= 1.2 * near.secret["least"]]
    assert [_verdict(near, fitting[t]).points for t in between] == [3] * len(between) != []


@pytest.mark.parametrize(
    "value", [None, "keep", ["keep"], ["swap"] * 9, [0] * 4, ["Keep"] * 4, {"keep": 1}, [None] * 4]
)
def test_what_is_no_plan_earns_nothing(value: Any) -> None:
    assert _verdict(cases()[0], value).points == 0


def test_a_plan_is_played_by_name_and_refused_otherwise() -> None:
    stages = [Stage(1, 2, 30, 10)] * 2
    assert simulate_plan(stages, np.array(["keep", "keep"]), 60, 10).makespan == 6
    with pytest.raises(ValueError, match="'drop' is not a treatment"):
        simulate_plan(stages, ["drop", "keep"], 60, 10)
    with pytest.raises(Infeasible):
        simulate_plan(stages, ["keep", "keep"], 59, 10)
