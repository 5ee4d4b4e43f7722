"""Every judge of every lab reads whatever stands in the place of an answer, or of a part of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autograder.model.judge import judge_answer
from autograder.model.task import Answer, Case, Task
from autograder.sandbox.host.in_process import LocalStudent
from peakmem.core import serialization
from tests.answers import first_right
from tests.hostile.test_hidden_cases import TASKS

#: None is right anywhere as a whole answer.
ODD = {
    "an array": np.array([1.5, 2.5]),
    "an array of two dimensions": np.full((2, 2), math.nan),
    "an array without elements": np.zeros((1, 0)),
    "an array of 64 dimensions": np.zeros((1,) * 64),
    "a number as an array": np.array(-77.25),
    "a flag as an array": np.array(True),
    "complex numbers": np.array([1j]),
    "ragged lists": [[1, 2], [3, [4]]],
    "a list of arrays": [np.array([1.0, 2.0])] * 2,
    "nothing": None,
    "a list of nothing": [None, None],
    "an empty list": [],
    "huge": 10**400,
    "huge and negative": -(10**400),
    "a list with a huge number": [10**400, 1],
    "text": "x",
    "half a character": chr(0xD800),
    "bytes": b"x",
    "nan": math.nan,
    "infinite": math.inf,
    "a dict": {"a": np.array([1, 2])},
    "a set": {1, 2},
    "an outcome": ("value", np.array([1.0, 2.0])),
    "a tuple": (1, 2, 3),
}
WHOLE = [task for task in TASKS if not task.needs_gpu]
_CASES = 4  # of those that ask different things; the labs' measured ones take seconds each
Place = tuple[Any, ...]


def places(value: Any, here: Place = ()) -> Iterator[Place]:
    """Where something stands in an answer: itself, and of each container the parts."""
    yield here
    if isinstance(value, (dict, list, tuple)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*here, key))


def with_odd(value: Any, place: Place, odd: Any) -> Any:
    """The answer with something else in this place."""
    if not place:
        return odd
    key, *rest = place
    if isinstance(value, dict):
        return value | {key: with_odd(value[key], tuple(rest), odd)}
    parts = list(value)
    parts[key] = with_odd(parts[key], tuple(rest), odd)
    return type(value)(parts)


def told_apart(task: Task) -> list[Case]:
    """A case of each kind that the task has, by what it decides and what its probe is given."""
    kinds = {}
    for case in task.cases(np.random.default_rng(0)):
        kinds.setdefault((case.parts, *sorted(case.inputs), case.inputs.get("kind")), case)
    return list(kinds.values())[:_CASES]


def answered(task: Task) -> list[tuple[Case, Answer]]:
    """The cases with the answers of a right solution."""
    names: dict[str, Any] = {}
    exec(first_right(task), names)
    student = LocalStudent(names)
    found = []
    for case in told_apart(task):
        inputs = dict(case.inputs) | ({"metered": True} if case.budget else {})
        found.append(
            (case, student.run(task.probe_path, inputs, task.ask(case) if task.ask else None))
        )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("task", WHOLE, ids=lambda task: task.id)
def test_an_odd_part_of_an_answer_breaks_no_judge(task: Task) -> None:
    for case, answer in answered(task):
        assert answer.raised is None
        seen = set()
        for place in places(answer.value):
            kind = tuple("any" if isinstance(key, int) else key for key in place)
            if kind in seen:
                continue
            seen.add(kind)
            for name, odd in ODD.items():
                changed = replace(answer, value=with_odd(answer.value, place, odd))
                try:
                    judge_answer(task, case, changed)
                except Exception as error:
                    pytest.fail(f"{name} at {place} of {dict(case.inputs)!s:.200}: {error!r}")


@pytest.mark.slow
@pytest.mark.parametrize("task", WHOLE, ids=lambda task: task.id)
def test_an_odd_answer_earns_no_part(task: Task) -> None:
    for name, odd in ODD.items():
        sent = serialization.decode(serialization.encode(odd))
        for values in (sent, [sent] * 40, [("value", sent)], ("value", sent)):
            for case in told_apart(task):
                found = judge_answer(task, case, Answer(values, memory="within"))
                assert not all(finding.ok for finding in found.values()), (name, case.parts)


def test_a_judge_that_breaks_is_found() -> None:
    broken = replace(WHOLE[0], judge=lambda case, answer: {"all": answer.value[0][1] > 3})
    with pytest.raises(pytest.fail.Exception, match="at"):
        test_an_odd_part_of_an_answer_breaks_no_judge(broken)
