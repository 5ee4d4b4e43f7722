"""Judges of labs 3 and 5 read any value that a student's function returns, and comment on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autograder.content import find_lab
from autograder.model.judge import judge
from autograder.model.task import Answer, Task
from autograder.sandbox.host.in_process import LocalStudent
from tests.answers import first_right

#: Values that are right answers to no case here.
ODD = [
    np.zeros((1, 0)),
    np.array([1.5, 2.5]),
    np.zeros((2, 2)),
    np.array([True, False]),
    np.array([1j]),
    [np.array([1.0, 2.0])] * 2,
    [[1, 2], [3]],
    {"a": np.array([1, 2])},
    10**400,
    [10**400, 1],
    (1, 2, 3),
    "x",
    b"x",
    {1, 2},
    [None, None],
]
#: They return no value: they are judged by the parameters afterwards.
STEPS = {"lab03-adam_step", "lab03-lean_adam_step", "lab03-step_in_backward"}
TASKS = [
    task
    for lab in ("lab03_adam", "lab05_accumulation")
    for task in find_lab(lab).tasks
    if task.id not in STEPS
]


def _with(answer: Answer, odd: Any) -> Iterator[Answer]:
    """The answer with this value wherever the student's own is in it."""
    value = answer.value
    if isinstance(value, dict):
        name = "results" if "results" in value else "value"
        yield replace(answer, value={**value, name: odd})
    elif value[0] == "value":
        yield replace(answer, value=("value", odd))
    elif value[0] != "raised":
        for number, outcome in enumerate(value):
            if outcome[0] == "value":
                changed = [*value[:number], ("value", odd), *value[number + 1 :]]
                yield replace(answer, value=changed)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_an_odd_value_is_wrong_and_breaks_nothing(task: Task) -> None:
    names: dict[str, Any] = {}
    exec(first_right(task), names)
    student = LocalStudent(names)
    tried = 0
    cases = [case for case in task.cases(np.random.default_rng(0)) if case.budget is None]
    for case in [case for case in cases if case.secret.get("checks") != "gradients"][:3]:
        answer = student.run(task.probe_path, case.inputs, task.ask(case) if task.ask else None)
        for odd in ODD:
            for changed in _with(answer, odd):
                assert judge(task, [case], [changed]).status != "right", (case.inputs, odd)
                tried += 1
    assert tried >= len(ODD)


def test_the_timeline_tells_where_a_list_first_differs() -> None:
    (task,) = (task for task in TASKS if task.id == "lab03-step_timeline")
    case = task.cases(np.random.default_rng(0))[0]
    names: dict[str, Any] = {}
    exec(first_right(task), names)
    (kind, first), second = LocalStudent(names).run(task.probe_path, case.inputs).value
    assert max(first) < 1000, "numbers to follow on paper"
    wrong = [*first[:5], first[5] + 1, *first[6:]]
    message = judge(task, [case], [Answer([(kind, wrong), second])]).message
    assert "your list first differs at event 6, backward (after ..., backward, step," in message
    assert f"Expected {first[5]}, but got {first[5] + 1}." in message
