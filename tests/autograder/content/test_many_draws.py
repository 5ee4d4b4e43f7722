"""Right answers keep full points whatever inputs are drawn; a bank's other tests draw only once."""

from __future__ import annotations

import pytest

from autograder.content import find_lab, lab_names
from autograder.model.task import Lab, Task
from tests.autograder.content.bank_in_process import graded_bank

_DRAWS = 30
# Without measured tasks, whose calls are slow, and ranks, which need their processes.
TASKS = [
    pytest.param(lab, task, id=task.id)
    for lab in map(find_lab, lab_names())
    for task in lab.tasks
    if task.trust != "measured" and not task.ranks and not task.needs_gpu
]


@pytest.mark.slow
@pytest.mark.parametrize(("lab", "task"), TASKS)
def test_a_right_answer_keeps_its_points_in_every_draw(lab: Lab, task: Task) -> None:
    lost = {
        (entry.label, verdict.message)
        for draw in range(_DRAWS)
        for entry, verdict in graded_bank(lab, task, secret=b"%d" % draw, kind="right")
        if verdict.status != "right"
    }
    assert lost == set()
