"""Lab 8: the bank's answers, and the references against oracles of another make."""

from __future__ import annotations

import pytest

from autograder.content.lab08 import LAB
from autograder.model.task import Task
from peakmem.measure import ranks
from tests.answers import mistakes_shown
from tests.autograder.content.bank_in_process import check_bank


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for ever is found out sooner."""
    monkeypatch.setattr(ranks, "_STILL", 1.0)


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_bank(task: Task) -> None:
    check_bank(LAB, task)


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_every_mistake_stands_in_the_bank(task: Task) -> None:
    assert set(task.mistakes) <= mistakes_shown(task)
