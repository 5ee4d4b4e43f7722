"""Planners against exhaustive search, under rules of memory that are written down here again."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterator

import pytest
from checkpoint_schedules import Revolve

from peakmem.core.errors import Infeasible
from peakmem.plan import (
    best_kept_set,
    every_k,
    keep_all,
    kept_set,
    kept_set_optimal,
    optimal,
)
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.plan import Plan
from peakmem.plan.rotor import least_peak
from peakmem.plan.simulator import simulate


def draw_chain(rng: random.Random, n: int, *, plain: bool = False) -> Chain:
    """A chain of unequal stages with small whole numbers; plain: no gradients, no temporaries."""

    def stage() -> Stage:
        output = rng.randint(0, 4)
        saved = output + rng.choice((0, 1, 3, 8))
        times = float(rng.randint(0, 5)), float(rng.randint(0, 5))
        if plain:
            return Stage(*times, saved, output)
        more = [rng.randint(0, 3) for _ in range(4)]
        return Stage(*times, saved, output, *more, backward_extra_bytes=rng.randint(-2, 3))

    stages = tuple(stage() for _ in range(n))
    return Chain(stages) if plain else Chain(stages, rng.randint(0, 3), rng.randint(0, 3))


# Exhaustive search for recomputation. What is there: "o3" the output of stage 3 alone, "s3" what
# stage 3 saved; `head` is an output that a forward left and that isn't held yet.

State = tuple[frozenset[str], int | None, int]  # held, head, stage whose backward is next


def live(chain: Chain, held: frozenset[str], head: int | None, following: int) -> int:
    """Bytes in memory between two steps."""
    total = chain.input_bytes
    for name in held:
        stage = chain.stages[int(name[1:])]
        total += stage.output_bytes if name[0] == "o" else stage.saved_bytes
    if head is not None:
        total += chain.stages[head].output_bytes
    for stage in chain.stages[following + 1 :]:
        total += stage.parameter_gradient_bytes
    if following < len(chain) - 1:
        total += chain.stages[following].gradient_bytes if following >= 0 else 0
        total += chain.input_gradient_bytes if following < 0 else 0
    return total


def moves(chain: Chain, state: State) -> Iterator[tuple[float, int, State]]:
    """Every step that can follow: its time, the peak while it runs, and the state after it."""
    held, head, following = state
    now = live(chain, held, head, following)
    sources = {-1, *(int(name[1:]) for name in held)} if head is None else {head}
    for source in sources:
        i = source + 1
        if i > following or f"s{i}" in held or f"o{i}" in held:
            continue
        stage = chain.stages[i]
        with_input = held | {f"o{source}"} if head is not None else held
        peak = now + stage.saved_bytes + stage.keep_extra_bytes
        yield stage.forward_time, peak, (with_input | {f"s{i}"}, None, following)
        peak = now + stage.output_bytes + stage.forward_extra_bytes
        yield stage.forward_time, peak, (with_input, i, following)
        if head is not None:
            yield stage.forward_time, peak, (held, i, following)
    i = following
    before = i == 0 or f"o{i - 1}" in held or f"s{i - 1}" in held
    if head is None and f"s{i}" in held and before:
        stage = chain.stages[i]
        after = held - {f"s{i}", f"o{i - 1}"}
        made = stage.parameter_gradient_bytes
        made += chain.stages[i - 1].gradient_bytes if i else chain.input_gradient_bytes
        made += stage.gradient_bytes if i == len(chain) - 1 else 0
        peak = now + max(0, made + stage.backward_extra_bytes)
        peak = max(peak, now + made - stage.saved_bytes - stage.gradient_bytes)
        yield stage.backward_time, peak, (after, None, i - 1)


def least_time(chain: Chain, budget_bytes: int) -> float | None:
    """The time of the fastest way within a budget, or None; held tensors stay until used."""
    start: State = (frozenset(), None, len(chain) - 1)
    order = itertools.count()
    queue = [(0.0, next(order), start)]
    best = {start: 0.0}
    while queue:
        time, _, state = heapq.heappop(queue)
        if state[2] < 0:
            return time
        if time > best[state]:
            continue
        for seconds, peak, following in moves(chain, state):
            if peak <= budget_bytes and time + seconds < best.get(following, float("inf")):
                best[following] = time + seconds
                heapq.heappush(queue, (time + seconds, next(order), following))
    return None


def check_against(
    plan_within: Callable[[Chain, int], Plan],
    least: Callable[[Chain, int], float | None],
    chain: Chain,
    budget_bytes: int,
) -> None:
    """A planner's time is the least, and it refuses a budget only where nothing fits."""
    expected = least(chain, budget_bytes)
    if expected is None:
        with pytest.raises(Infeasible) as caught:
            plan_within(chain, budget_bytes)
        enough = caught.value.least_budget_bytes
        assert enough is not None
        assert enough > budget_bytes
        assert least(chain, enough) is not None
        assert least(chain, enough - 1) is None
        assert simulate(chain, plan_within(chain, enough)).peak_bytes == enough
    else:
        run = simulate(chain, plan_within(chain, budget_bytes))
        assert run.peak_bytes <= budget_bytes
        assert run.makespan == expected, (chain, budget_bytes)


def draw_budget(rng: random.Random, chain: Chain) -> int:
    top = simulate(chain, keep_all(chain)).peak_bytes
    return rng.randint(max(0, top // 3), top)


@pytest.mark.parametrize("seed", range(10))
def test_optimal_equals_exhaustive_search(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        chain = draw_chain(rng, rng.randint(1, 6), plain=rng.random() < 0.3)
        check_against(optimal, least_time, chain, draw_budget(rng, chain))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_optimal_equals_exhaustive_search_of_long_chains(seed: int) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(10):
        chain = draw_chain(rng, rng.randint(7, 8), plain=rng.random() < 0.3)
        check_against(optimal, least_time, chain, draw_budget(rng, chain))


def kept_time(chain: Chain, budget_bytes: int) -> float | None:
    """The least time over all sets of kept outputs, each walked through by the rules above."""
    n = len(chain)
    found = []
    for kept in itertools.chain.from_iterable(
        itertools.combinations(range(n - 1), size) for size in range(n)
    ):
        run = simulate(chain, kept_set(chain, kept))
        if run.peak_bytes <= budget_bytes:
            last = kept[-1] if kept else -1
            again = sum(stage.forward_time for stage in chain.stages[: last + 1])
            assert run.makespan == chain.work_time + again
            found.append(run.makespan)
    return min(found, default=None)


@pytest.mark.parametrize("seed", range(10))
def test_kept_sets_equal_exhaustive_search(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        chain = draw_chain(rng, rng.randint(1, 8), plain=rng.random() < 0.5)
        check_against(kept_set_optimal, kept_time, chain, draw_budget(rng, chain))


@pytest.mark.parametrize("seed", range(5))
def test_a_kept_sets_peak_is_the_labs_formula(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        n = rng.randint(1, 12)
        chain = draw_chain(rng, n, plain=True)
        kept = sorted(rng.sample(range(n - 1), rng.randint(0, n - 1)))
        bounds = [0, *(i + 1 for i in kept), n]
        peak = max(
            sum(chain.stages[i].output_bytes for i in kept if i < a)
            + sum(stage.saved_bytes for stage in chain.stages[a:b])
            for a, b in itertools.pairwise(bounds)
        )
        assert simulate(chain, kept_set(chain, kept)).peak_bytes == peak


def test_planners_that_can_do_more_are_never_slower() -> None:
    rng = random.Random(5)
    for _ in range(20):
        chain = draw_chain(rng, 12)
        budget = simulate(chain, every_k(chain, 3)).peak_bytes
        times = [
            simulate(chain, planner(chain, budget)).makespan
            for planner in (optimal, kept_set_optimal)
        ]
        assert times == sorted(times)
        assert times[0] >= chain.work_time


@pytest.mark.parametrize(("length", "slots", "extra"), [(16, 4, 27), (16, 8, 22), (100, 10, 222)])
def test_equal_stages_need_as_many_forwards_as_revolve(length: int, slots: int, extra: int) -> None:
    # Revolve's slots hold states, the chain's input among them. On top come the state that it
    # works on, and the tape of one step.
    tape = slots + 2  # so large that there is room for one at a time
    chain = Chain((Stage(1.0, 0.0, tape, 1),) * length, input_bytes=1)
    run = simulate(chain, optimal(chain, slots + 1 + tape))
    assert run.makespan - length == extra
    steps = sum(
        action.n1 - action.n0
        for action in Revolve(length, slots)
        if type(action).__name__ == "Forward"
    )
    assert steps - length == extra


def test_coarse_slots_keep_within_the_budget() -> None:
    rng = random.Random(2)
    for slots in (1, 3, 10, 40):
        chain = draw_chain(rng, 20)
        budget = simulate(chain, least_peak(chain)).peak_bytes
        plan = optimal(chain, budget, slots)
        assert simulate(chain, plan).peak_bytes <= budget
        budget = simulate(chain, keep_all(chain)).peak_bytes
        assert simulate(chain, optimal(chain, budget, slots)).makespan == chain.work_time


def test_a_chain_of_a_hundred_stages_is_planned() -> None:
    rng = random.Random(3)
    stages = [
        Stage(rng.random(), rng.random(), 10**6 + rng.randrange(10**7), rng.randrange(10**6))
        for _ in range(100)
    ]
    chain = Chain(tuple(stages))
    budget = simulate(chain, keep_all(chain)).peak_bytes // 5
    run = simulate(chain, optimal(chain, budget, slots=200))
    assert run.peak_bytes <= budget
    assert run.makespan <= simulate(chain, kept_set_optimal(chain, budget)).makespan


def test_what_is_no_plan_is_refused() -> None:
    chain = draw_chain(random.Random(0), 4)
    with pytest.raises(ValueError, match="ascending order"):
        kept_set(chain, [2, 1])
    with pytest.raises(ValueError, match="ascending order"):
        kept_set(chain, [3])
    with pytest.raises(ValueError, match="at least 1"):
        every_k(chain, 0)
    with pytest.raises(ValueError, match="slot"):
        optimal(chain, 100, slots=0)
    with pytest.raises(Infeasible, match="smallest budget"):
        best_kept_set(chain, 0)
