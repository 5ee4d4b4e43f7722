"""Lab 1's tasks against oracles that know nothing of them, and the bank of answers to them."""

import pytest

from autograder.task import Task
from autograder.tasks.lab01 import LAB
from tests.autograder.tasks.bank_in_process import check_bank


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.name)
def test_the_bank_is_graded_as_it_says(task: Task) -> None:
    check_bank(LAB, task)
