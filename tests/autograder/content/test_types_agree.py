"""Self-check and judge agree on a right value, whatever its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, wraps
from typing import Any

import matplotlib
import numpy as np
import pytest
import torch

from autograder.content import find_lab
from autograder.model.judge import draw, judge
from autograder.model.task import Task
from autograder.sandbox.host.in_process import LocalStudent
from tests.grading import cell_of, solved

LABS = ("lab01_formats", "lab02_sizing", "lab03_adam")
# These return no value: they train, and are judged by the parameters afterwards.
SHOWN_AND_CHECKED = {"lab02-two-steps"}  # it measures what a self-check compares with
STEPS = {"lab03-adam_step", "lab03-lean_adam_step", "lab03-step_in_backward"}
TASKS = [
    pytest.param(name, task, id=task.id)
    for name in LABS
    for task in find_lab(name).tasks
    if task.id not in {*STEPS, "lab01-to_bf16"}
    and not task.needs_gpu
    # A mended leak returns tensors, or keeps a graph: other types are another exercise's matter.
    and task.name != "find_the_leak"
]

Leaf = Callable[[Any], Any]


def _changed(value: Any, number: Leaf, row: Leaf) -> Any:
    """The value with its numbers and its rows of numbers as other types."""
    if isinstance(value, dict):
        return {key: _changed(part, number, row) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_changed(part, number, row) for part in value]
        return row(parts) if isinstance(value, list) else type(value)(parts)
    return number(value) if isinstance(value, (bool, int, float)) else value


def _as(number: Leaf = lambda x: x, row: Leaf = list) -> Leaf:
    return lambda value: _changed(value, number, row)


def _float(x: Any) -> Any:
    return float(x) if isinstance(x, int) and float(x) == x else x


def _whole(x: Any) -> Any:
    return int(x) if isinstance(x, bool) or (isinstance(x, float) and x.is_integer()) else x


VARIANTS: Mapping[str, Leaf] = {
    "as it is": _as(),
    "numpy scalars": _as(lambda x: np.asarray(x)[()]),
    "floats": _as(_float),
    "numpy floats": _as(lambda x: np.float64(_float(x))),
    "integers": _as(_whole),
    "bools": _as(lambda x: bool(x) if x in (0, 1) else x),
    "arrays without dimensions": _as(np.asarray),
    "float arrays without dimensions": _as(lambda x: np.asarray(_float(x))),
    "tensors without dimensions": _as(lambda x: torch.tensor(x, dtype=_dtype(x))),
    "tuples": _as(row=tuple),
    "arrays": _as(row=lambda parts: np.array(parts) if _is_numbers(parts) else parts),
    "tensors": _as(row=lambda parts: torch.tensor(parts) if _is_numbers(parts) else parts),
    "twice and one more": _as(lambda x: 2 * x + 1),
    "text": _as(str),
    "nothing": lambda value: None,
    "in a list": lambda value: [value, value],
}


RIGHT = {"as it is", "numpy scalars", "arrays without dimensions", "tensors without dimensions"}
WRONG = {"nothing", "in a list"}
WRONG_NUMBERS = {"twice and one more", "text"}
# Each differs little from one that is tried every time.
ALIKE = {
    "numpy floats",
    "integers",
    "arrays without dimensions",
    "float arrays without dimensions",
    "arrays",
    "in a list",
}


def _dtype(x: Any) -> torch.dtype | None:
    return torch.float64 if isinstance(x, float) else None


def _is_numbers(parts: list[Any]) -> bool:
    return all(isinstance(part, (bool, int, float)) for part in parts)


def _returns(function: Callable[..., Any], variant: Leaf) -> Callable[..., Any]:
    @wraps(function)
    def changed(*arguments: Any, **named: Any) -> Any:
        return variant(function(*arguments, **named))

    return changed


@cache
def _namespace(lab: str) -> dict[str, Any]:
    """The definitions of a solved lab, without cells that only show something, as in grading."""
    matplotlib.use("agg")
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in solved(lab)["cells"]:
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
        shows = {"demo", "raises-exception"} & set(cell["metadata"].get("tags", []))
        left_out = (shows and grade_id not in SHOWN_AND_CHECKED) or grade_id in _ids(lab)
        if cell["cell_type"] == "code" and not left_out:
            exec("".join(cell["source"]), names)
    return names


def _ids(lab: str) -> set[str]:
    return {task.id for task in find_lab(lab).tasks}


def _self_check_passes(lab: str, task: Task, names: Mapping[str, Any]) -> bool:
    source = "".join(cell_of(solved(lab), f"{task.id}-check")["source"])
    try:
        exec(source, dict(names))
    except Exception:
        return False
    return True


def _judge_passes(task: Task, names: Mapping[str, Any]) -> bool:
    student = LocalStudent(dict(names))
    cases = draw(task, b"secret", "ada", b"submission")
    answers = [student.run(task.probe_path, case.inputs, None) for case in cases]
    return judge(task, cases, answers).status == "right"


def _verdicts(lab: str, task: Task, variant: Leaf) -> tuple[bool, bool]:
    names = dict(_namespace(lab))
    for name in task.defines:
        names[name] = _returns(names[name], variant)
    return _self_check_passes(lab, task, names), _judge_passes(task, names)


@pytest.mark.parametrize(
    "variant",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in ALIKE)) for name in VARIANTS],
)
@pytest.mark.parametrize(("lab", "task"), TASKS)
def test_they_agree(lab: str, task: Task, variant: str) -> None:
    check, grade = _verdicts(lab, task, VARIANTS[variant])
    assert check == grade, f"the self-check passes: {check}; the judge passes: {grade}"
    if variant in RIGHT:
        assert grade
    if variant in WRONG or (variant in WRONG_NUMBERS and task.id != "lab02-inconsistent_rows"):
        assert not grade


ARRAYS: Mapping[str, tuple[Leaf, bool]] = {
    "uint16": (lambda a: a, True),
    "int64": (lambda a: a.astype(np.int64), True),
    "another order of bytes": (lambda a: a.astype(">u4"), True),
    "a tensor": (lambda a: torch.tensor(a.astype(np.int32)), True),
    "floats": (lambda a: a.astype(np.float64), False),
    "text": (lambda a: a.astype(str), False),
    "flat": (np.ravel, False),
}


@pytest.mark.parametrize("variant", ARRAYS)
def test_they_agree_on_arrays(variant: str) -> None:
    (task,) = (task for task in find_lab(LABS[0]).tasks if task.id == "lab01-to_bf16")
    changed, right = ARRAYS[variant]
    assert _verdicts(LABS[0], task, changed) == (right, right)
