"""Stock nbgrader runs these labs: generate_assignment, validate and autograde, for real."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch

from autograder.content import find_lab, find_task
from autograder.grading import stock
from autograder.grading.stock import score
from autograder.model.restrictions import Ban
from autograder.model.task import Lab, Task
from peakmem.core.errors import OutOfMemory

REPOSITORY = Path(__file__).resolve().parents[3]
LABS = sorted(path.name for path in (REPOSITORY / "labs").glob("lab*"))
LAB1, LAB5 = "lab01_formats", "lab05_accumulation"
TASK = find_task("lab05-largest_micro_batch")
LIMITS = find_task("lab01-format_limits")  # of a lab that runs without torch, so nbgrader is quick

# Of the four limits, min_subnormal is wrong.
THREE_LIMITS = """
def format_limits(exponent_bits, mantissa_bits):
    bias, epsilon = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small, large = 2.0 ** (1 - bias), (2 - epsilon) * 2.0**bias
    return dict(max=large, min_normal=small, min_subnormal=small, epsilon=epsilon)
"""

SEARCH = """
def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
        except peakmem.OutOfMemory:
            too_large = middle
        else:
            fits = middle
    return fits
"""

LINEAR = """
def largest_micro_batch(run, upper):
    for m in range(1, upper + 1):
        try:
            run(m)
        except peakmem.OutOfMemory:
            return m - 1
    return upper
"""

# Every way to write to stderr; the handler made here holds the kernel's own stream.
TO_STDERR = """\
    warnings.warn("from warnings")
    print("from print", file=sys.stderr)
    # No solution may import os, and no constant may name it.
    getattr(logging, chr(111 + ({} < 0)) + "s").write(2, b"from below Python\\n")
    logging.warning("from logging")
"""
SETUP = "import logging, sys, warnings\nlogging.basicConfig()\n"


def noisy(solution: str, argument: str) -> str:
    """The solution, writing to stderr in every way before it computes."""
    head, computes = solution.split(":\n", 1)
    return f"{SETUP}{head}:\n{TO_STDERR.format(argument)}{computes}"


# With nbgrader


def nbgrader(course: Path, *arguments: str) -> str:
    """Run an nbgrader command from the command line; return everything it printed."""
    environment = dict(os.environ)
    # nbgrader runs alembic by its bare name; a kernel under pytest does not watch its stderr.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment.pop("PYTEST_CURRENT_TEST", None)
    patience = [] if "generate" in arguments[0] else ["--Execute.timeout=3600"]
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments, *patience],
        cwd=course,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def hand_in(course: Path, student: str, lab: str, notebook: Path, answer: str = "") -> None:
    cells = json.loads(notebook.read_text())
    if answer:
        for cell in cells["cells"]:
            if cell["id"] == f"{LIMITS.id}-solution":
                cell["source"] = answer
    path = course / "submitted" / student / lab / f"{lab}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(cells))


@dataclass(frozen=True)
class Course:
    """A course folder, in which nbgrader's own commands work."""

    root: Path

    def solution(self, lab: str) -> Path:
        return self.root / "solutions" / lab / f"{lab}.ipynb"

    def release(self, lab: str) -> Path:
        """The release that nbgrader makes of a lab."""
        made = self.root / "labs" / lab / f"{lab}.ipynb"
        if not made.exists():
            nbgrader(self.root, "generate_assignment", lab)
        return made

    def grade_solution(self, lab: str) -> None:
        """Have nbgrader grade the instructor's solution of one more lab."""
        self.release(lab)
        hand_in(self.root, "solves_it", lab, self.solution(lab))
        nbgrader(self.root, "autograde", lab)

    def scores(self, student: str, lab: Lab) -> dict[str, float | None]:
        """Points of a student by task, as nbgrader's gradebook has them."""
        from nbgrader.api import Gradebook

        with (
            warnings.catch_warnings(action="ignore"),
            Gradebook(f"sqlite:///{self.root}/gradebook.db") as gradebook,
        ):
            (notebook,) = gradebook.find_submission(lab.name, student).notebooks
            found = {grade.name: grade.auto_score for grade in notebook.grades}
        return {task.id: found[task.id] for task in lab.tasks}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A course of all labs; two submissions of lab 1 are graded by nbgrader's own commands."""
    root = tmp_path_factory.mktemp("stock") / "course"
    (root / "solutions").mkdir(parents=True)
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    for lab in LABS:
        shutil.copytree(REPOSITORY / "solutions" / lab, root / "solutions" / lab)
    made = Course(root)
    answer = noisy(THREE_LIMITS, "mantissa_bits")
    hand_in(root, "is_noisy", LAB1, made.release(LAB1), answer)
    made.grade_solution(LAB1)
    return made


# Of each lab, the one that is graded here each time, the others with --all.
EACH_LAB = pytest.mark.parametrize(
    "lab", [pytest.param(lab, marks=[pytest.mark.slow] * (lab != LAB1)) for lab in LABS]
)


@EACH_LAB
def test_stock_releases_what_build_does(course: Course, lab: str) -> None:
    made = course.release(lab)
    assert made.read_bytes() == (REPOSITORY / "labs" / lab / made.name).read_bytes()


@EACH_LAB
def test_the_solution_gets_full_marks(course: Course, lab: str) -> None:
    if lab != LAB1:
        course.grade_solution(lab)
    judged = {
        task.id: 0.0 if task.needs_gpu and not torch.cuda.is_available() else task.points
        for task in find_lab(lab).tasks
    }
    assert course.scores("solves_it", find_lab(lab)) == judged


@pytest.mark.slow
def test_the_release_gets_nothing(course: Course) -> None:
    hand_in(course.root, "opens_it", LAB1, course.release(LAB1))
    nbgrader(course.root, "autograde", LAB1)
    assert set(course.scores("opens_it", find_lab(LAB1)).values()) == {0.0}


def test_a_partly_right_answer_gets_its_parts_and_writing_to_stderr_costs_nothing(
    course: Course,
) -> None:
    assert course.scores("is_noisy", find_lab(LAB1))[LIMITS.id] == 1.5
    path = course.root / "autograded" / "is_noisy" / LAB1 / f"{LAB1}.ipynb"
    cells = {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}
    streams = [out for out in cells[LIMITS.id].outputs if out.output_type == "stream"]
    assert {out.name for out in streams} == {"stdout"}
    shown = "".join(out.text for out in streams)
    for source in ("warnings", "print", "below Python", "logging"):
        assert f"from {source}" in shown


@pytest.mark.slow
def test_validate_passes_the_solution_and_reports_the_unsolved(course: Course) -> None:
    notebooks = str(course.solution(LAB1)), str(course.release(LAB1))
    validation = nbgrader(course.root, "validate", *notebooks)
    solution, _, release = validation.rpartition("Validating")
    assert "Success! Your notebook passes all the tests." in solution
    unsolved = len(find_lab(LAB1).tasks) + 1
    assert f"VALIDATION FAILED ON {unsolved} CELL(S)!" in release, "one of them is in words"
    names = {name for task in find_lab(LAB1).tasks for name in task.defines}
    unwritten = {name for name in names if f"{name} is not written yet." in release}
    assert unwritten == names - {"stall_value"}, "whose given lines call format_limits first"


# In this process


def run_solution(source: str) -> dict[str, Any]:
    """The names of a notebook that ran this one cell."""
    import peakmem

    names: dict[str, Any] = {"peakmem": peakmem, "OutOfMemory": OutOfMemory, "In": ["", source]}
    exec(source, names)
    return names


@pytest.mark.parametrize("lab", LABS)
def test_no_stub_earns_a_point(lab: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])  # peakmem.lab() adds to it
    tasks = find_lab(lab).tasks  # before the lab's first cell hides what judges import
    names: dict[str, Any] = {}
    path = REPOSITORY / "labs" / lab / f"{lab}.ipynb"
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.id.endswith(("-setup", "-solution")):
            exec(cell.source, names)
    assert {task.id: score(task.id, names) for task in tasks} == {task.id: 0.0 for task in tasks}


@pytest.mark.parametrize(
    ("source", "points"), [(SEARCH, "4.0"), (LINEAR, "3.0"), ("", "0.0")], ids=repr
)
def test_points_print_as_a_plain_float(source: str, points: str) -> None:
    value = score(TASK.id, run_solution(source))
    assert type(value) is float
    assert repr(value) == points


def test_the_message_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    score(TASK.id, run_solution(LINEAR))
    said = capsys.readouterr().out
    assert said.startswith("3 of 4 points. ")
    assert "Halve the interval" in said


def test_an_unknown_task_is_the_authors_mistake() -> None:
    with pytest.raises(ValueError, match="has no task 'lab05-nothing'"):
        score("lab05-nothing", {})


@pytest.mark.parametrize("answer", ["sys.exit()", "1 / 0", "object()", "sys.stderr.close()"])
def test_no_mistake_of_a_student_raises(answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = f"import sys\ndef largest_micro_batch(run, upper):\n    return {answer}\n"
    assert score(TASK.id, run_solution(source)) == 0.0
    assert capsys.readouterr().out.startswith("0 of 4 points. ")
    print("stderr still works", file=sys.stderr)
    assert capsys.readouterr().err == "stderr still works\n"


def test_an_interrupt_ends_the_cell() -> None:
    source = "def largest_micro_batch(run, upper):\n    raise KeyboardInterrupt\n"
    with pytest.raises(KeyboardInterrupt):
        score(TASK.id, run_solution(source))


@pytest.mark.filterwarnings("ignore:from warnings")
def test_stderr_is_shown_on_stdout(capfd: pytest.CaptureFixture[str]) -> None:
    source = noisy(SEARCH, "upper").replace("logging.basicConfig()\n", "")
    assert score(TASK.id, run_solution(source)) == 4.0
    out, err = capfd.readouterr()
    assert err == ""
    assert "from print" in out
    assert "from below Python" in out


def test_a_flood_on_stderr_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    source = "import sys\n" + SEARCH.replace(
        "    fits, too", "    sys.stderr.write('x' * 9999); fits, too"
    )
    score(TASK.id, run_solution(source))
    assert capsys.readouterr().out.count("x") < 3000


def test_a_judge_that_breaks_costs_no_exception() -> None:
    def judge(case: Any, answer: Any) -> Any:
        raise KeyError("an answer that nobody thought of")

    verdict = stock._verdict(replace(TASK, judge=judge), run_solution(SEARCH))
    assert (verdict.status, verdict.points) == ("could_not_judge", 0.0)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def largest_micro_batch(run, upper):\n    raise NotImplementedError", "Not written yet"),
        (
            "def other():\n    raise NotImplementedError\n"
            "def largest_micro_batch(run, upper):\n    return other()",
            "it calls another exercise's function that isn't written",
        ),
    ],
)
def test_a_written_exercise_is_not_called_unwritten(source: str, said: str) -> None:
    assert said in stock._verdict(TASK, run_solution(source)).message


def banning_bisect() -> Task:
    return replace(TASK, ban=Ban(modules=frozenset({"bisect"}), reason="Halve it yourself."))


WITH_BISECT = f"import bisect\n{SEARCH}".replace("    return fits", "    return bisect and fits")


def test_a_banned_use_in_the_notebooks_cells_earns_nothing() -> None:
    verdict = stock._verdict(banning_bisect(), run_solution(WITH_BISECT))
    assert (verdict.status, verdict.points) == ("wrong", 0.0)
    assert verdict.message.endswith("Halve it yourself.")
    assert stock._verdict(banning_bisect(), run_solution(SEARCH)).points == 4.0


@pytest.mark.parametrize(("locked", "points"), [(True, 4.0), (False, 0.0)])
def test_the_labs_own_cells_may_use_what_is_banned(
    locked: bool, points: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = "import bisect\n\ndef halve(*args): return bisect.bisect(*args)\n"
    given = nbformat.v4.new_code_cell(helper)
    given.metadata["nbgrader"] = {"locked": locked, "grade": False, "solution": False}
    nbformat.write(nbformat.v4.new_notebook(cells=[given]), tmp_path / f"{LAB5}.ipynb")
    monkeypatch.chdir(tmp_path)
    solution = SEARCH.replace("    return fits", "    return halve and fits")
    names = run_solution(f"{helper}\n{solution}")
    names["In"] = ["", helper, solution]
    assert stock._verdict(banning_bisect(), names).points == points


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_its_exercise_is_not_judged() -> None:
    verdict = stock._verdict(replace(TASK, needs_gpu=True), run_solution(SEARCH))
    assert (verdict.status, verdict.points) == ("needs_gpu", 0.0)
    assert "excludes its points" in verdict.message
