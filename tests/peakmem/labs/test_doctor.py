"""The doctor: each check can fail, and names the one command that fixes it."""

from importlib.metadata import PackageNotFoundError, version

import pytest

from autograder.content import find_lab, lab_names
from peakmem.labs.doctor import check_machine, labs_here
from peakmem.labs.session import GPU_EXERCISES


def test_this_machine_can_run_the_labs() -> None:
    assert all(check.ok for check in check_machine())


@pytest.mark.parametrize("package", ["torch", "nbgrader", "jupyterlab"])
def test_a_missing_package_is_found(package: str) -> None:
    def without(name: str) -> str:
        if name == package:
            raise PackageNotFoundError(name)
        return version(name)

    (bad,) = [check for check in check_machine(without) if not check.ok]
    assert (bad.name, bad.found) == (package, "not installed")
    assert bad.remedy.startswith(f'pip install "{package}>=')


@pytest.mark.parametrize(
    ("found", "ok"), [("2.7.9", False), ("2.8.0+cpu", True), ("2.10.0rc1", True), ("3", True)]
)
def test_an_old_package_is_found(found: str, ok: bool) -> None:
    checks = check_machine(lambda name: found if name == "torch" else version(name))
    assert [check.ok for check in checks if check.name == "torch"] == [ok]


def test_gpu_exercises_are_those_of_the_grader() -> None:
    marked = {lab: [t.id for t in find_lab(lab).tasks if t.needs_gpu] for lab in lab_names()}
    told = {lab: [task] for lab, task in GPU_EXERCISES.items() if lab in marked}
    assert told == {lab: tasks for lab, tasks in marked.items() if tasks}


def test_without_a_gpu_the_marked_exercises_are_left_out() -> None:
    assert set(labs_here(has_gpu=True).values()) == {"everything"}
    here = labs_here(has_gpu=False)
    assert "lab07-gpu_speed" in here["lab07_mixed_precision"]
    assert here["lab01_formats"] == "everything"
    assert max(map(len, here.values())) <= 80 - 24  # the command prints labs in 24 columns
