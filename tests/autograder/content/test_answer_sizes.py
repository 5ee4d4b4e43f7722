"""The answers of a whole notebook are small beside what a notebook's answers may take."""

from __future__ import annotations

import pytest

from autograder.base.limits import ANSWER_BYTES
from autograder.content import find_lab, lab_names
from autograder.model.judge import draw
from autograder.model.task import Task
from autograder.sandbox.host.in_process import LocalStudent
from autograder.trials.answer_bank import read_bank
from autograder.trials.entry import Entry
from peakmem.core import serialization
from tests.answers import BANK

# Their answers are the largest; those of other labs are measured with --all.
LABS_OF_THE_LARGEST = {"lab01_formats", "lab10_attention"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in LABS_OF_THE_LARGEST))
        for name in lab_names()
    ],
)
def test_correct_answers_leave_room_for_larger_ones_and_for_a_second_run(name: str) -> None:
    # A default dtype of float64 doubles them. Exercises that lose points run twice more: a fifth
    # each time, if nothing doubles these.
    lab, right = find_lab(name), {}
    for entry in read_bank(BANK, lab):
        if entry.kind == "right":
            right.setdefault(entry.task, entry)
    here = [task for task in lab.tasks if not (task.needs_gpu or task.ranks)]
    sizes = {task.id: _answer_bytes(task, right[task.id]) for task in here}
    assert sum(sizes.values()) < ANSWER_BYTES / 5, sizes


def _answer_bytes(task: Task, entry: Entry) -> int:
    names: dict[str, object] = {}
    exec(entry.source, names)
    student = LocalStudent(names)
    answers = [
        student.run(task.probe_path, case.inputs, task.ask(case) if task.ask else None)
        for case in draw(task, b"", "", b"")
    ]
    assert [answer.raised for answer in answers] == [None] * len(answers)
    return sum(len(serialization.encode(answer.value)) for answer in answers)
