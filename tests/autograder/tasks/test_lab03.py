from __future__ import annotations
import pytest
from autograder.task import Task
from autograder.tasks.lab03 import LAB
from tests.autograder.tasks.bank_in_process import check_bank

@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_bank(task: Task) -> None:
    check_bank(LAB, task)
