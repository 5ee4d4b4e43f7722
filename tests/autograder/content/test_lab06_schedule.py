"""Lab 6's least makespan: against every list of copies there is, played by the simulator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from autograder.content.lab06 import search
from autograder.content.lab06.methods import best_set
from autograder.content.lab06.schedule import schedule
from autograder.content.lab06.search import TooHard, least_makespan, lower_bound
from autograder.model.task import Answer, Case
from peakmem.core.errors import Infeasible
from peakmem.plan.swapping import Stage, simulate


def every_list(n: int, trips: int) -> Iterator[list[tuple[str, int, int]]]:
    """Every list in which each stage makes at most so many round trips.

    `after` never falls from copy to copy: the link works in order, so a smaller one says nothing.
    """
    for counts in itertools.product(range(trips + 1), repeat=n):
        stages = [i for i, count in enumerate(counts) for _ in range(2 * count)]
        for order in set(itertools.permutations(stages)):
            seen = [0] * n
            kinds = []
            for i in order:
                kinds.append("in" if seen[i] % 2 else "out")
                seen[i] += 1
            for afters in itertools.combinations_with_replacement(range(2 * n), len(order)):
                yield list(zip(kinds, order, afters, strict=True))


def by_force(stages: list[Stage], budget: int, link: float, trips: int = 1) -> float:
    best = float("inf")
    for copies in every_list(len(stages), trips):
        try:
            best = min(best, simulate(stages, budget, link, copies).makespan)
        except Infeasible:
            continue
    return best


def _chain(rng: np.random.Generator, n: int) -> tuple[list[Stage], int, float]:
    numbers = rng.integers((1, 1, 1), (5, 5, 6), (n, 3)).tolist()
    stages = [Stage(forward, backward, size) for forward, backward, size in numbers]
    sizes = [stage.saved_bytes for stage in stages]
    return stages, int(rng.integers(max(sizes), sum(sizes) + 1)), float(rng.choice([0.5, 1, 2]))


@pytest.mark.parametrize("seed", range(12))
def test_two_stages_and_two_round_trips_each(seed: int) -> None:
    problem = _chain(np.random.default_rng(seed), 2)
    least = least_makespan(*problem)
    assert least == by_force(*problem)
    if seed < 2:
        assert least == by_force(*problem, trips=2)  # a second trip never helped


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_three_stages(seed: int) -> None:
    problem = _chain(np.random.default_rng(100 + seed), 3)
    assert least_makespan(*problem) == by_force(*problem)


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_bounds_hold_and_a_known_makespan_changes_nothing(n: int) -> None:
    for seed in range(40):
        problem = _chain(np.random.default_rng(seed), n)
        least = least_makespan(*problem)
        assert lower_bound(*problem) <= least <= best_set(*problem)
        assert least_makespan(*problem, known=best_set(*problem)) == least


@pytest.mark.parametrize("n", [3, 4])
def test_the_search_finds_the_same_without_its_bound(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = [_chain(np.random.default_rng(seed), n) for seed in range(40)]
    found = [least_makespan(*problem) for problem in problems]
    monkeypatch.setattr(search._Problem, "bound", lambda self, state: 0.0)
    assert [least_makespan(*problem) for problem in problems] == found


def test_a_search_that_is_too_hard_says_so() -> None:
    stages = [Stage(1, 1, 4)] * 6
    with pytest.raises(TooHard, match="more than 10 states"):
        least_makespan(stages, 8, 1, most_states=10)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_drawn_is_proven_and_can_be_reached(seed: int) -> None:
    for case in schedule.cases(np.random.default_rng(seed)):
        if "within 1.25x" in case.parts or "within 1.05x" in case.parts:
            plain, budget, link = case.inputs["calls"][0]
            stages = [Stage(**stage) for stage in plain]
            assert case.secret["least"] == least_makespan(stages, budget, link)
            assert best_set(stages, budget, link) <= 1.05 * case.secret["least"]


def _judged(copies: object, least: float, kind: str = "value") -> dict[str, bool]:
    stages = [vars(Stage(2, 4, 100))] * 3
    parts = tuple(schedule.parts)
    case = Case(parts, {"calls": [[stages, 200, 100.0]]}, secret={"least": least})
    found = schedule.judge(case, Answer([(kind, copies, "")]))
    return {part: finding.ok for part, finding in found.items()}


def test_ratios_are_kept_to_the_edge() -> None:
    copies = [("out", 0, 0), ("in", 0, 4)]  # takes 19
    assert list(_judged(copies, 19 / 1.05).values()) == [True, True, True]
    assert list(_judged(copies, 18).values()) == [True, True, False]
    assert list(_judged(copies, 19 / 1.25).values()) == [True, True, False]
    assert list(_judged(copies, 15.1).values()) == [True, False, False]


@pytest.mark.parametrize(
    "copies",
    [None, 3, "out", [3], [("out", 0)], [("out", 9, 0)], [("up", 0, 0)], [{}], [[None] * 3]],
)
def test_garbled_schedules_are_wrong_and_break_nothing(copies: object) -> None:
    assert not any(_judged(copies, 18).values())


def test_an_infeasible_or_raising_answer_earns_nothing() -> None:
    assert not any(_judged([], 18).values())
    assert not any(_judged("ValueError", 18, kind="raised").values())


@pytest.mark.parametrize(
    ("error", "ok"), [("ValueError", True), ("Infeasible", True), ("KeyError", False)]
)
def test_where_nothing_fits_any_value_error_is_right(error: str, ok: bool) -> None:
    case = Case(
        ("feasible everywhere",),
        {"calls": [[[vars(Stage(2, 4, 100))], 99, 100.0]]},
        secret={"least": 6},
    )
    assert schedule.judge(case, Answer([("raised", error, "")]))["feasible everywhere"].ok is ok
    assert not any(_judged(error, 18, kind="raised").values())  # here all fits
