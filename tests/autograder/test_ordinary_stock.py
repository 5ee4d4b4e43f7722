"""The same class graded by nbgrader and by us: the same scores, with the guide's exceptions."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbgrader
import pytest
from traitlets.config import Config

from autograder.base.course import Course
from autograder.base.limits import Limits
from autograder.model.scoring import SANE, STOCK
from autograder.publish.publishing import publish
from autograder.runs.classroom import grade_all, take
from autograder.runs.room import Classroom
from autograder.store.out_folder import OutFolder
from tests.autograder.small_assignment import (
    NAME,
    PROBLEM1,
    PROBLEM2,
    cell_of,
    hand_in,
    problem1,
    problem2,
    released,
    submission,
    write_course,
)

pytestmark = pytest.mark.slow

SQUARE, TOTAL, QUIET, TWICE, VALUE = (
    f"{PROBLEM1}/test_{name}" for name in ("square", "total", "quiet", "twice", "value")
)
ESSAY, PLOT, PROJECT, ZERO = (
    f"{PROBLEM1}/{name}" for name in ("essay", "plot", "project", "test_zero")
)
CUBE = f"{PROBLEM2}/test_square"
LOOPS = "loops"  # the student whose code does
WAITS = (None, True)  # an instructor has to give it

Scores = dict[str, dict[str, tuple[float | None, bool]]]


def values():
    """The possible values of a test's last line, by the student whose code shows it."""
    return {
        "true": "return True",
        "false": "return False",
        "none": "return None",
        "numpy": "import numpy as np\nreturn np.float64(1.5)",
        "nan": "return float('nan')",
        "negative": "return -1.0",
        "above": "return 3",
        "text": "return 'fine'",
        "raises": "raise ValueError('no')",
        "half": "return 1",
    }


def edited():
    """A wrong answer, and a test that was edited to let it pass."""
    made = submission(square="return 0")
    cell_of(made[PROBLEM1], "test_square")["source"] = "pass"
    return made


def without(*names):
    made = submission()
    cells = made[PROBLEM1]["cells"]
    made[PROBLEM1]["cells"] = [cell for cell in cells if cell["id"] not in names]
    return made


def duplicated():
    made = submission()
    cells = made[PROBLEM1]["cells"]
    at = next(i for i, cell in enumerate(cells) if cell["id"] == "test_square")
    cells.insert(at + 1, deepcopy(cells[at]) | {"id": "copy"})
    return made


def by_student():
    """The class; the names say what is special about each."""
    made = {
        "right": submission(),
        "wrong": submission(square="return abs(x)", total="return 0", cube="return 1"),
        "warns": submission(quiet="import warnings\nwarnings.warn('hm')\nreturn x + 1"),
        "prints": submission(quiet="print(0.0)\nreturn x + 1"),
        "unreadable": submission(square="return x *", plot="x ="),
        "own_name": submission(square="test_square = 1\nreturn x * x"),
        "edited": edited(),
        "untouched": {PROBLEM1: released(problem1), PROBLEM2: released(problem2)},
        "first_only": {PROBLEM1: submission()[PROBLEM1]},
        "second_only": {PROBLEM2: submission()[PROBLEM2]},
        LOOPS: submission(quiet="while True:\n    pass"),
        "deleted": without("test_square", "essay"),
        "unsolved": without("square"),
        "duplicated": duplicated(),
        "exits": submission(quiet="import os\nos._exit(3)"),
    }
    return made | {name: submission(value=body) for name, body in values().items()}


# A submission that nbgrader gives up on, and with it the class.
NOT_BY_STOCK = {"above", "duplicated", "exits"}
# Where our own rules differ from nbgrader's, as docs/ordinary.md says.
SANER = {
    ("warns", QUIET): (1.0, False),
    ("warns", TWICE): (1.0, False),
    ("false", VALUE): (0.0, False),
    ("numpy", VALUE): (1.5, False),
    ("nan", VALUE): WAITS,
    ("negative", VALUE): (0.0, False),
    ("deleted", SQUARE): (2.0, False),
}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    root = write_course(tmp_path_factory.mktemp("course"))
    for student, notebooks in by_student().items():
        hand_in(root / "submitted", student, notebooks)
    return root


@pytest.fixture(scope="module")
def stock(course):
    """What nbgrader gives."""
    found = by_nbgrader(course)
    assert by_student().keys() - found.keys() == NOT_BY_STOCK
    return found


def by_nbgrader(course: Path, settings: Mapping[str, Any] | None = None) -> Scores:
    """The scores of all students whose submission nbgrader grades without failing."""
    from nbgrader.apps import NbGraderAPI

    config = Config(settings or {})
    config.CourseDirectory.root = str(course)
    config.CourseDirectory.db_url = url = f"sqlite:///{course}/gradebook.db"
    config.Execute.timeout = 3600
    students = sorted(path.name for path in (course / "submitted").iterdir())
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):
        # nbgrader runs alembic by its bare name; a kernel under pytest does not watch its stderr.
        programs = str(Path(sys.executable).parent)
        patch.setenv("PATH", os.pathsep.join([programs, os.environ["PATH"]]))
        patch.delenv("PYTEST_CURRENT_TEST", raising=False)
        patch.chdir(course)
        api = NbGraderAPI(config=config)
        assert api.generate_assignment(NAME)["success"]
        # On a busy machine any cell may be late by the clock, and nbgrader would stop it.
        hurried = NbGraderAPI(config=Config(config))
        hurried.config.Execute.timeout = 3
        graders = {student: hurried if student == LOOPS else api for student in students}
        done = [s for s in students if graders[s].autograde(NAME, s)["success"]]
        found = scores(url)
    return {student: found[student] for student in done}


def graded(course, out, rules):
    """Our scores, read from the gradebook as nbgrader reads it."""
    limits = Limits(cell_seconds=2.0)
    room = Classroom(NAME, OutFolder(out), Course(course), b"secret", limits, rules=rules)
    for _ in grade_all(room, take(room, course / "submitted"), workers=2):
        pass
    publish(OutFolder(out), Course(course))
    return scores(f"sqlite:///{out}/gradebook.db")


@pytest.fixture(scope="module")
def by_stocks_rules(course, tmp_path_factory):
    return graded(course, tmp_path_factory.mktemp("stock"), STOCK)


@pytest.fixture(scope="module")
def by_our_rules(course, tmp_path_factory):
    return graded(course, tmp_path_factory.mktemp("sane"), SANE)


def scores(url) -> Scores:
    """Each student's (score, needs manual grading) by cell."""
    from nbgrader.api import Gradebook

    with warnings.catch_warnings(action="ignore"), Gradebook(url) as gradebook:
        return {
            handed.student.id: {
                f"{notebook.name}/{grade.name}": (grade.auto_score, grade.needs_manual_grade)
                for notebook in handed.notebooks
                for grade in notebook.grades
            }
            for handed in gradebook.assignment_submissions(NAME)
        }


@pytest.mark.parametrize("student", sorted(by_student().keys() - NOT_BY_STOCK))
def test_by_stocks_rules_scores_are_stocks(student, stock, by_stocks_rules):
    assert by_stocks_rules[student] == stock[student]


@pytest.mark.parametrize("student", sorted(by_student().keys() - NOT_BY_STOCK))
def test_by_our_rules_they_differ_where_the_guide_says(student, stock, by_our_rules):
    expected = {cell: SANER.get((student, cell), was) for cell, was in stock[student].items()}
    assert by_our_rules[student] == expected


def test_what_stock_gives_up_on_is_graded(by_stocks_rules, by_our_rules):
    for found in (by_stocks_rules, by_our_rules):
        assert found["duplicated"] == found["right"]
        assert found["above"] == found["right"] | {VALUE: WAITS}
        assert found["exits"] == found["right"] | {QUIET: (0.0, False), TWICE: (0.0, False)}
    assert by_our_rules["right"][SQUARE] == (2.0, False)


def test_stocks_own_scores_are_those_that_this_class_is_about(stock):
    """The oracle: were nbgrader to change, or the class to test nothing, this would say so."""
    assert stock["right"] == {
        SQUARE: (2.0, False),
        TOTAL: (3.0, False),
        QUIET: (1.0, False),
        TWICE: (1.0, False),
        VALUE: (2.0, False),
        ESSAY: WAITS,
        PLOT: WAITS,
        PROJECT: WAITS,
        ZERO: (0.0, False),
        CUBE: (1.0, False),
    }
    assert stock["wrong"][TOTAL] == (1.5, False)
    assert stock["warns"][QUIET] == (0.0, False)
    assert stock["deleted"][SQUARE] == WAITS
    assert stock["false"][VALUE] == stock["nan"][VALUE] == (2.0, False)
    assert stock["untouched"][ESSAY] == (0.0, False)
    assert stock["second_only"][ESSAY] == stock["second_only"][PROJECT] == (0.0, False)


# nbgrader's own example course, as `nbgrader quickstart` makes it, with its two students


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    guide = Path(nbgrader.__file__).parent / "docs" / "source" / "user_guide"
    if not (guide / "submitted" / "hacker").is_dir():
        pytest.skip("this nbgrader is installed without its guide")
    root = tmp_path_factory.mktemp("example")
    for name in (f"source/{NAME}", "submitted"):
        shutil.copytree(guide / name, root / name)
    shutil.copy(guide / "source" / "header.ipynb", root / "source")
    config = 'c = get_config()\nc.IncludeHeaderFooter.header = "source/header.ipynb"\n'
    (root / "nbgrader_config.py").write_text(config)
    return root


def test_nbgraders_example_course_gets_nbgraders_scores(example, tmp_path):
    theirs = by_nbgrader(example, {"IncludeHeaderFooter": {"header": "source/header.ipynb"}})
    assert theirs.keys() == {"bitdiddle", "hacker"}
    assert theirs["bitdiddle"][f"{PROBLEM1}/correct_squares"] == (0.0, False)
    assert graded(example, tmp_path / "stock", STOCK) == theirs
    assert graded(example, tmp_path / "sane", SANE) == theirs
