"""The grader's processes import no slow module that they don't need."""

import subprocess
import sys
from collections.abc import Sequence

import pytest

HEAVY = ["nbformat", "nbgrader", "torch", "IPython", "matplotlib", "jupytext", "alembic"]
WORKER = "autograder.runs.classroom, autograder.content.{lab}"
CONTROLLER = "autograder.cli.app, autograder.runs.classroom, autograder.publish.publishing"
FOUND = """
from autograder.grading.registry import find_lab
from autograder.store.fingerprint import terms_of
from autograder.base.limits import Limits
from autograder.notebooks.questions import COURSE
lab = find_lab("lab03_adam")
lab.hides, lab.imports, lab.measured, lab.notebooks, lab.preload
terms_of("lab03_adam", COURSE, Limits(), isolated=True)
from autograder.rules.counting import Counting
Counting("left_out").why_left_out("lab03_adam", "lab03-adam_step")
"""


def heavy_after(imports: str, then: str = "", heavy: Sequence[str] = HEAVY) -> list[str]:
    code = f"import sys, {imports}\n{then}\nprint(*(m for m in {heavy} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.split()


@pytest.mark.parametrize("lab", ["lab01", "lab02"])
def test_a_worker_loads_nothing_heavy_before_it_judges_its_labs_leak(lab: str) -> None:
    assert heavy_after(WORKER.format(lab=lab)) == []


def test_a_worker_is_light_until_it_loads_a_lab() -> None:
    assert heavy_after("autograder.runs.classroom, autograder.content") == []


def test_a_controller_loads_no_labs_tasks() -> None:
    assert heavy_after(CONTROLLER, FOUND) == []


def test_help_loads_no_numpy() -> None:
    assert heavy_after("autograder.cli.app", heavy=[*HEAVY, "numpy"]) == []
    assert heavy_after("autograder.content", heavy=["numpy"]) == ["numpy"]


def test_a_heavy_import_would_show() -> None:
    heavy = "nbformat, nbgrader.api, autograder.content.lab03, autograder.sandbox.guest.shell"
    seen = heavy_after(f"{CONTROLLER}, {heavy}", FOUND)
    assert {"nbformat", "nbgrader", "torch", "IPython"} <= set(seen)
