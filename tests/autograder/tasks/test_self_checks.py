"""What grading takes for right passes the self-checks too: solved notebooks, run whole."""

import pytest

from autograder.bank import read_bank
from autograder.bench import solved_notebooks
from autograder.limits import Limits
from autograder.questions import COURSE
from autograder.released import release_of
from autograder.sandbox import Sandbox
from autograder.tasks import find_lab, lab_names

pytestmark = pytest.mark.slow

WITH_SOCKETS = {"lab05-no-sync"}  # which the sandbox has none of
LIMITS = Limits(cell_seconds=120, submission_seconds=900, memory_bytes=4 * 2**30)


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(limits=LIMITS) as prepared:
        yield prepared


@pytest.mark.parametrize("name", lab_names())
def test_right_answers_pass_the_self_checks(sandbox, name):
    lab = find_lab(name)
    failed = [
        (number, failure)
        for number, notebook in enumerate(_notebooks(lab))
        for failure in _failures(sandbox, notebook)
    ]
    assert failed == []


@pytest.mark.parametrize("name", lab_names())
def test_control_work_that_is_missing_fails_them(sandbox, name):
    checks = {f"{task.id}-check" for task in find_lab(name).tasks if not task.needs_gpu}
    failed = {cell for cell, _ in _failures(sandbox, release_of(name, COURSE / "labs"))}
    assert checks <= failed


def _notebooks(lab):
    """As many as it takes for each right answer of the bank to be in one."""
    right = [
        entry.task for entry in read_bank(COURSE / "tests" / "bank", lab) if entry.kind == "right"
    ]
    most = max(map(right.count, set(right)))
    return solved_notebooks(lab, release_of(lab.name, COURSE / "labs"), most)


def _failures(sandbox, notebook):
    """Each cell that raises, all that is given included, and what it says."""
    with sandbox.open() as student:
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            for output in student.run_cell("".join(cell["source"])):
                name = cell["metadata"].get("nbgrader", {}).get("grade_id", "a given cell")
                if output["output_type"] == "error" and name not in WITH_SOCKETS:
                    yield name, f"{output['ename']}: {output['evalue']}"[:300]
