"""Canaries in every hidden case of every lab: no message reveals one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from autograder.content import find_lab
from autograder.model.judge import judge_safely
from autograder.model.task import Answer, Case, Task
from tests.grading import REPOSITORY

CANARY = "canary-of-a-hidden-case"
LABS = sorted(path.name for path in (REPOSITORY / "labs").iterdir() if path.is_dir())
TASKS = [task for name in LABS for task in find_lab(name).tasks]
RNG = np.random.default_rng

TELLING = {
    "value": Answer(CANARY, memory="within"),
    "values": Answer([CANARY] * 40, memory="within"),
    "outcomes": Answer([("value", CANARY)] * 40, memory="within"),
    "exceptions": Answer([("raised", CANARY, CANARY)] * 40, memory="within"),
    "exception": Answer(raised=(CANARY, CANARY, CANARY)),
    "undefined": Answer(raised=("NotDefined", CANARY, CANARY)),
    "lost": Answer(lost=CANARY),
}


def message(task: Task, cases: list[Case], answer: Answer) -> str:
    """The messages for this answer in one hidden case at a time, with no answer in the others."""
    given = [answer if case.fixed else Answer(raised=("Other", "other", "")) for case in cases]
    return judge_safely(task, cases, given).message


@cache
def hiding() -> list[Task]:
    """The tasks with hidden cases. Drawing cases takes seconds, so don't call it in collection."""
    return [task for task in TASKS if any(case.fixed for case in task.cases(RNG(0)))]


@pytest.mark.parametrize("answer", TELLING.values(), ids=TELLING)
def test_what_came_of_a_hidden_case_is_not_told(answer):
    for task in hiding():
        cases = task.cases(RNG(0))
        assert CANARY not in message(task, cases, answer), task.id
        hidden = [case for case in cases if case.fixed]
        assert CANARY not in judge_safely(task, hidden, [answer] * len(hidden)).message, task.id


@pytest.mark.parametrize("answer", [TELLING["exception"], TELLING["lost"]])
def test_what_came_of_a_drawn_case_would_be_told(answer):
    for task in hiding():
        cases = [replace(case, fixed=False) for case in task.cases(RNG(0))]
        assert CANARY in judge_safely(task, cases, [answer] * len(cases)).message


def test_every_lab_hides_cases():
    assert {task.id.partition("-")[0] for task in hiding()} == {name[:5] for name in LABS}
