"""Twenty gradings of one solved notebook, with both cores busy, give twenty times full marks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from autograder.content import find_lab
from tests.grading import Class, course_copy, solved

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

COPIES = 20


def scores(graded: Class) -> Counter[tuple[str, str, str, str]]:
    """How many students have this (task, status, score, best score)."""
    tasks = {task.id for task in find_lab(graded.lab).tasks}
    return Counter(
        (row["task"], row["status"], row["score"], row["max_score"])
        for row in graded.rows()
        if row["task"] in tasks
    )


# The labs whose bytes or seconds are measured as they are graded.
@pytest.mark.parametrize("lab", ["lab04_checkpointing", "lab05_accumulation", "lab06_swap"])
def test_a_solution_is_graded_alike_each_time(tmp_path: Path, lab: str) -> None:
    graded = Class(tmp_path, course_copy(tmp_path / "course"), lab)
    for number in range(COPIES):
        graded.hand_in(f"student{number:02}", solved(lab))
    done = graded.grade("--workers", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    found = scores(graded)
    assert set(found.values()) == {COPIES}, "some copies were scored otherwise"
    assert {task for task, *_ in found} == {task.id for task in find_lab(lab).tasks}
    for task, status, score, best in found:
        # Exercises that need a GPU have no score without one.
        assert (status, score) in {("correct", best), ("needs a GPU", "")}, task
