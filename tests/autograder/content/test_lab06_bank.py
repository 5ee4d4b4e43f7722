"""Lab 6: the bank's answers are graded as they say, and every mistake stands among them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from autograder.content.lab03.adam_step import adam_step
from autograder.content.lab06 import LAB
from autograder.model.task import Task
from tests.answers import mistakes_shown
from tests.autograder.content.bank_in_process import check_bank


@pytest.fixture(autouse=True)
def _no_hooks_left() -> Iterator[None]:
    """Take away the hooks that a wrong answer leaves in this process, or later tests meet them."""
    yield
    while torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
        torch._C._autograd._pop_saved_tensors_default_hooks()


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_bank(task: Task) -> None:
    check_bank(LAB, task)


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_every_mistake_stands_in_the_bank(task: Task) -> None:
    # Adam's own are all in lab 3's bank.
    shared = adam_step.mistakes if task.name == "offloaded_adam" else {}
    assert {name for name in task.mistakes if name not in shared} <= mistakes_shown(task)
