"""The bank of answers on the cases of several secrets: no mistake earns more by luck."""

import pytest

from autograder.content import find_lab, lab_names
from tests.autograder.content.bank_in_process import check_bank

TASKS = [
    (name, task) for name in lab_names() for task in find_lab(name).tasks if not task.needs_gpu
]


@pytest.mark.slow
@pytest.mark.parametrize("secret", [b"one more", b"another", b"the third"])
@pytest.mark.parametrize(("name", "task"), TASKS, ids=[task.id for _, task in TASKS])
def test_the_bank_is_graded_as_it_says_whatever_is_drawn(name, task, secret):
    check_bank(find_lab(name), task, secret=secret)
