"""The simulator against a walk through time in small ticks, and against invalid plans."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmem.core.errors import Infeasible
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.plan import Copy, Plan, Step
from peakmem.plan.rotor import optimal
from peakmem.plan.segments import every_k, keep_all, kept_set
from peakmem.plan.simulator import simulate
from peakmem.plan.treatments import treated


def draw_chain(rng: random.Random, n: int) -> Chain:
    """Times and bytes are whole, and so are the times of copies at a link of 1."""

    def stage() -> Stage:
        output = rng.randint(1, 3)
        return Stage(rng.randint(1, 4), rng.randint(1, 4), output + rng.randint(0, 5), output)

    return Chain(tuple(stage() for _ in range(n)))


def in_ticks(chain: Chain, plan: Plan) -> tuple[int, int] | None:
    """Makespan and peak of a plan without recomputation, one unit of time after the other."""
    n, stages = len(chain), chain.stages
    place = ["" for _ in stages]
    clock = done = peak = begun = 0
    step_left = copy_left = -1
    budget = plan.budget_bytes
    assert budget is not None

    def used() -> int:
        return sum(
            s.saved_bytes for s, p in zip(stages, place, strict=True) if p not in ("", "host")
        )

    idle = 0
    while done < 2 * n:
        stage = done if done < n else 2 * n - 1 - done
        reads = {stage - 1} if done < n else {stage, stage - 1}
        if step_left < 0 and all(place[i] == "device" for i in reads if i >= 0):
            nbytes = stages[stage].saved_bytes if done < n else 0
            if used() + nbytes <= budget:
                step_left = int(
                    stages[stage].forward_time if done < n else stages[stage].backward_time
                )
                if done < n:
                    place[stage] = "making"
        while begun < len(plan.copies) and 2 * n - plan.copies[begun].stage <= done:
            begun += 1  # too late
        if copy_left < 0 and begun < len(plan.copies):
            kind, i, after = plan.copies[begun]
            free = place[i] == ("device" if kind == "out" else "host")
            free &= step_left < 0 or i not in reads
            free &= kind == "out" or used() + stages[i].saved_bytes <= budget
            if free and done > after:
                place[i] = "leaving" if kind == "out" else "coming"
                copy_left, begun = stages[i].saved_bytes, begun + 1
        peak = max(peak, used())
        idle = idle + 1 if step_left < 0 and copy_left < 0 else 0
        if idle:
            return None
        clock += 1
        step_left, copy_left = max(step_left, 0) - 1, max(copy_left, 0) - 1
        if step_left == 0:
            place[stage] = "device" if done < n else ""
            done, step_left = done + 1, -1
        if copy_left == 0:
            moved = place.index("leaving") if "leaving" in place else place.index("coming")
            place[moved] = "host" if place[moved] == "leaving" else "device"
            copy_left = -1
    return clock, peak


@given(st.integers(0, 10**6))
def test_swaps_take_as_long_as_in_ticks(seed: int) -> None:
    rng = random.Random(seed)
    n = rng.randint(2, 6)
    chain = draw_chain(rng, n)
    budget = rng.randint(1, simulate(chain, keep_all(chain)).peak_bytes)
    stages = sorted(rng.sample(range(n - 1), rng.randint(0, n - 1)))
    copies = [Copy("out", i, rng.randint(i, n)) for i in stages]
    copies += [Copy("in", i, rng.randint(n - 1, 2 * n - 2 - i)) for i in reversed(stages)]
    plan = Plan("any", keep_all(chain).steps, tuple(copies), 1.0, budget)
    expected = in_ticks(chain, plan)
    if expected is None:
        with pytest.raises(Infeasible):
            simulate(chain, plan)
    else:
        assert simulate(chain, plan)[:2] == expected


@given(st.integers(0, 10**6))
def test_memory_at_the_end_is_what_a_step_leaves(seed: int) -> None:
    rng = random.Random(seed)
    stages = tuple(
        Stage(1, 1, 9, 3, 2, rng.randint(0, 3), 1, 1, rng.randint(-2, 2))
        for _ in range(rng.randint(1, 8))
    )
    chain = Chain(stages, input_bytes=5, input_gradient_bytes=4)
    for plan in (keep_all(chain), every_k(chain, 2), optimal(chain, 10**4)):
        run = simulate(chain, plan)
        left = 5 + 4 + sum(stage.parameter_gradient_bytes for stage in stages)
        assert run.timeline[-1].live_bytes == left
        assert run.peak_bytes == max(event.live_bytes for event in run.timeline)
        assert run.makespan == run.timeline[-1].time == run.spans[-1].end


CHAIN = Chain((Stage(1, 2, 30, 10), Stage(1, 2, 30, 10), Stage(1, 2, 30, 10)))
KEEP = keep_all(CHAIN).steps


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (KEEP[:-1], "ends before the backward of stage 0"),
        (KEEP[1:], "its input is not in memory"),
        ((KEEP[0], KEEP[0]), "is in memory already"),
        (KEEP[:3] + KEEP[4:], "next backward is that of stage 2"),
        ((Step("checkpoint", 0), Step("checkpoint", 1), Step("backward", 2)), "are not in memory"),
        ((Step("drop", 0),), "as an output to free"),
        ((Step("keep", 3),), "a stage from 0 to 2, but got 3"),
        ((("hold", 0),), "kind is unknown"),
        ((*KEEP, Step("checkpoint", 0)), "leaves the outputs"),
    ],
)
def test_what_is_no_plan_is_refused(steps: tuple[Step, ...], message: str) -> None:
    plan = Plan("bad", tuple(Step(*step) for step in steps))
    with pytest.raises(ValueError, match=message):
        simulate(CHAIN, plan)


def test_a_budget_that_is_too_small_names_the_least() -> None:
    with pytest.raises(Infeasible, match="needs 90") as caught:
        simulate(CHAIN, Plan("keep", KEEP, budget_bytes=80))
    assert caught.value.least_budget_bytes == 90
    swaps = (Copy("out", 0, 1), Copy("in", 0, 2))
    with pytest.raises(Infeasible, match="waits forever"):
        simulate(CHAIN, Plan("swap", KEEP, swaps, 10.0, 50))
    with pytest.raises(Infeasible, match="input alone"):
        simulate(Chain(CHAIN.stages, 100), Plan("keep", KEEP, budget_bytes=80))


def test_copies_need_a_link() -> None:
    with pytest.raises(ValueError, match="link_bytes_per_s"):
        simulate(CHAIN, Plan("swap", KEEP, (Copy("out", 0, 1),)))


def test_a_swap_behind_compute_costs_nothing() -> None:
    tight, ample = (treated(CHAIN, ["swap", "keep", "keep"], b, 30.0) for b in (60, 90))
    run = simulate(CHAIN, tight)  # forward 2 waits 1 for its room, backward 1 for its input
    assert run[:2] == (11.0, 60)
    assert [span[:2] for span in run.spans if span.kind in ("out", "in")] == [("out", 0), ("in", 0)]
    assert simulate(CHAIN, ample)[:2] == (9.0, 90)


def test_a_kept_output_is_freed_with_its_use() -> None:
    peaks = [simulate(CHAIN, kept_set(CHAIN, kept)).peak_bytes for kept in ((), (0,), (0, 1))]
    assert peaks == [90, 70, 50]
