"""Answers that grading accepts pass the self-checks too: solved notebooks, run in full."""

from collections import Counter
from contextlib import ExitStack
from functools import cache

import pytest

from autograder.base.course import COURSE
from autograder.base.limits import Limits
from autograder.content import find_lab, lab_names
from autograder.notebooks.released import release_of
from autograder.sandbox.host.sandbox import Sandbox
from autograder.trials.answer_bank import read_bank
from benchmarks.notebooks import solved_notebooks
from tests.grading import cell_of, solved

pytestmark = pytest.mark.sandbox

# Right in its own exercise, the import undoes another one: the check is there to say so.
MEANT = "torch's checkpoint has replaced yours, in 4.2 too"
LIMITS = Limits(cell_seconds=120, submission_seconds=900, memory_bytes=4 * 2**30)


@pytest.fixture(scope="module")
def prepared():
    """A function that returns the sandbox for labs with ranks, or for those without."""
    with ExitStack() as started:
        yield cache(lambda ranks: started.enter_context(Sandbox(limits=LIMITS, ranks=ranks)))


@pytest.fixture
def sandbox(prepared, name):
    return prepared(find_lab(name).ranks)


@pytest.mark.parametrize("name", lab_names())
def test_the_solutions_run_without_an_error(sandbox, name):
    assert list(_failures(sandbox, solved(name))) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", lab_names())
def test_right_answers_pass_the_self_checks(sandbox, name):
    lab = find_lab(name)
    failed = [
        (number, failure)
        for number, notebook in enumerate(_notebooks(lab))
        for failure in _failures(sandbox, notebook)
    ]
    assert failed == []


@pytest.mark.slow
@pytest.mark.parametrize("name", lab_names())
def test_control_work_that_is_missing_fails_them(sandbox, name):
    checks = {f"{task.id}-check" for task in find_lab(name).tasks if not task.needs_gpu}
    failed = {cell for cell, _ in _failures(sandbox, release_of(name, COURSE.releases))}
    assert checks <= failed


def _notebooks(lab):
    """Solved notebooks, as many as it takes for each right answer of the bank to be in one.

    Answers that overwrite each other's names go into different notebooks; the instructor's
    solutions fill the gaps.
    """
    entries = [e for e in read_bank(COURSE.bank, lab) if e.kind == "right"]
    most = max(Counter(entry.task for entry in entries).values())
    seen = set()
    for notebook in solved_notebooks(lab, release_of(lab.name, COURSE.releases), most):
        seen |= {"".join(cell["source"]) for cell in notebook["cells"]}
        yield notebook
    for entry in entries:
        if entry.source not in seen:
            notebook = solved(lab.name)
            cell_of(notebook, f"{entry.task}-solution")["source"] = entry.source
            yield notebook


def _failures(sandbox, notebook):
    """Each cell that raises, given cells included, and its message."""
    with sandbox.open() as student:
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            for output in student.run_cell("".join(cell["source"])):
                name = cell["metadata"].get("nbgrader", {}).get("grade_id", "a given cell")
                if output["output_type"] != "error":
                    continue
                if MEANT not in output["evalue"]:
                    yield name, f"{output['ename']}: {output['evalue']}"[:300]
