"""Answers to lab 8 whose ranks communicate in other ways, and a notebook that left files open."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autograder.base.limits import Limits
from autograder.content.lab08 import LAB
from autograder.content.lab08.ring import ring_all_reduce
from autograder.model.judge import draw, judge
from autograder.model.task import Verdict
from autograder.sandbox.host.sandbox import Sandbox
from tests.grading import cell_of, solved

pytestmark = pytest.mark.sandbox

LIMITS = Limits(cell_seconds=60, submission_seconds=600)
ON_A_BOARD = """
import torch
import torch.distributed as dist

BOARD = torch.zeros(2**18).share_memory_()  # every rank inherits it

def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    size = len(BOARD) // world
    for at in range(0, len(x), size):
        part = x[at : at + size]
        BOARD[rank * size : rank * size + len(part)] = part
        dist.barrier()
        part.zero_()
        for other in range(world):
            part += BOARD[other * size : other * size + len(part)]
        dist.barrier()
"""
OPEN_FILES = "import torch, torch.distributed as dist\nopened = [open('/dev/null') for _ in '123']"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(LAB.hides, limits=LIMITS, measured=True, ranks=True) as prepared:
        yield prepared


def graded(sandbox: Sandbox, *cells: str) -> Verdict:
    """The verdict on a large all-reduce by these cells."""
    task, case = ring_all_reduce, draw(ring_all_reduce, b"secret", "s", b"")[-1]
    with sandbox.open() as student:
        assert student.budgets_hold
        for cell in cells:
            outputs = student.run_cell(cell)
            assert not any(output["output_type"] == "error" for output in outputs), outputs
        inputs = case.inputs
        answer = student.run(
            task.probe_path, inputs, seconds=60, budget=case.budget, ranks=inputs["world"]
        )
    return judge(task, [case], [answer])


def test_bytes_that_go_by_shared_memory_do_not_earn_the_traffic(sandbox: Sandbox) -> None:
    verdict = graded(sandbox, ON_A_BOARD)
    assert verdict.status == "could_not_judge"
    assert "fewer bytes than this exercise needs" in verdict.message
    assert verdict.earned["bytes"] == 0


def test_files_that_a_notebook_leaves_open_cost_nothing(sandbox: Sandbox) -> None:
    solution = cell_of(solved("lab08_shards"), "lab08-ring_all_reduce-solution")["source"]
    assert graded(sandbox, OPEN_FILES, solution).status == "right"
