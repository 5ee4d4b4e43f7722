"""Lab 10: the bank's answers, and references and judges against oracles of another make."""

from __future__ import annotations

import pytest

from autograder.content.lab10 import LAB
from autograder.model.task import Task
from tests.answers import mistakes_shown
from tests.autograder.content.bank_in_process import check_bank


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_bank(task: Task) -> None:
    check_bank(LAB, task)


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_every_mistake_stands_in_the_bank(task: Task) -> None:
    assert set(task.mistakes) <= mistakes_shown(task)
