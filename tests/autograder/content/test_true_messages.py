"""Messages about mistakes: only those that the cases tell apart, and words about fixed cases."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from autograder.content import find_lab, lab_names
from autograder.content.lab06.methods import set_schedule
from autograder.model.judge import judge
from autograder.model.task import Answer, Case, Finding, Task, Verdict
from peakmem.core.errors import Infeasible
from peakmem.plan.swapping import Stage, simulate

LABS = [name for name in lab_names() if name >= "lab06"]
(SCHEDULE,) = (task for task in find_lab("lab06_swap").tasks if task.name == "schedule")
Method = Callable[[int], Iterator[tuple[int, ...]]]


def first_ones(n: int) -> Iterator[tuple[int, ...]]:
    yield from (tuple(range(k)) for k in range(n + 1))


def smallest_sets(n: int) -> Iterator[tuple[int, ...]]:
    yield from itertools.chain.from_iterable(
        itertools.combinations(range(n), k) for k in range(n + 1)
    )


def schedule_by(method: Method, case: Case) -> Answer:
    """What a schedule of the method's first set that works comes back as."""
    plain, budget, link = case.inputs["calls"][0]
    stages = [Stage(**stage) for stage in plain]
    if max(stage.saved_bytes for stage in stages) > budget:
        return Answer([("raised", "ValueError", "too small")])
    for swapped in method(len(stages)):
        copies = set_schedule(swapped, len(stages))
        try:
            simulate(stages, budget, link, copies)
        except Infeasible:
            continue
        return Answer([("value", copies)])
    raise AssertionError


def verdict_on(method: Method, seed: int) -> Verdict:
    cases = SCHEDULE.cases(np.random.default_rng(seed))
    return judge(SCHEDULE, cases, [schedule_by(method, case) for case in cases])


@pytest.mark.parametrize("seed", range(6))
def test_swapping_the_first_stages_is_never_taken_for_swapping_all(seed: int) -> None:
    assert verdict_on(first_ones, seed).mistake == "first_ones_only"


@pytest.mark.parametrize("seed", range(6))
def test_trying_other_stages_is_never_taken_for_swapping_the_first_ones(seed: int) -> None:
    verdict = verdict_on(smallest_sets, seed)
    chosen = [
        schedule_by(smallest_sets, case) for case in SCHEDULE.cases(np.random.default_rng(seed))
    ]
    outs = [
        [i for kind, i, _ in a.value[0][1] if kind == "out"]
        for a in chosen
        if a.value[0][0] == "value"
    ]
    if any(out != list(range(len(out))) for out in outs):
        assert verdict.mistake not in ("first_ones_only", "swaps_everything")


def tasks_with_fixed_cases() -> list[tuple[Task, list[Case]]]:
    drawn = [
        (task, task.cases(np.random.default_rng(0))) for lab in LABS for task in find_lab(lab).tasks
    ]
    return [(task, cases) for task, cases in drawn if any(case.fixed for case in cases)]


def test_every_fixed_case_says_what_it_tries() -> None:
    tried = [
        (task.id, case) for task, cases in tasks_with_fixed_cases() for case in cases if case.fixed
    ]
    assert len({name for name, _ in tried}) >= 14
    assert [name for name, case in tried if not case.about.endswith(".")] == []


def fails(case: Case, answer: Answer) -> dict[str, Finding]:
    return dict.fromkeys(case.parts, Finding(False, "a value of a hidden case"))


def test_who_fails_only_a_fixed_case_reads_what_it_tries() -> None:
    for task, cases in tasks_with_fixed_cases():
        for case in cases:
            if case.fixed:
                verdict = judge(replace(task, judge=fails), [case], [Answer()])
                assert f"A hidden case failed: {case.about}" in verdict.message
                assert "a value of" not in verdict.message
