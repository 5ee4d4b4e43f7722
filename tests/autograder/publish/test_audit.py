from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from autograder.publish.audit import audit
from autograder.publish.feedback import write_feedback
from autograder.publish.gradebook import write_gradebook
from autograder.publish.grades_csv import write_grades
from autograder.store.out_folder import OutFolder
from tests.autograder.small_class import HALVE, end_of, graded, make_course, verdict
from tests.autograder.small_release import LAB

RESULTS = [
    graded("ada"),
    graded("=bob", verdicts=(verdict(status="partly"), verdict(HALVE, "needs_gpu"))),
    end_of("eve", "quarantined", "The file isn't a notebook."),
    end_of("fay", "failed", "The grader's process stopped."),
    graded("ivy", isolated=False, verdicts=(verdict(status="could_not_judge"), verdict(HALVE))),
]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Everything published for five submissions, with nothing missing."""
    course, out = make_course(tmp_path / "course"), tmp_path / "out"
    write_gradebook(RESULTS, OutFolder(out), course)
    write_grades(RESULTS, OutFolder(out), course)
    for result in RESULTS:
        write_feedback(result, OutFolder(out), course)
    (out / "taken.json").write_text(json.dumps([[r.student, r.lab] for r in RESULTS]))
    return out


def edit(path: Path, pattern: str, replacement: str) -> None:
    text, count = re.subn(pattern, replacement, path.read_text(encoding="utf-8"), flags=re.M)
    assert count
    path.write_text(text, encoding="utf-8")


def query(out: Path, sql: str) -> None:
    with closing(sqlite3.connect(out / "gradebook.db")) as database:
        assert database.execute(sql).rowcount > 0
        database.commit()


def test_a_whole_class_has_no_gap(out: Path) -> None:
    assert audit(OutFolder(out)) == []


_OF_ADA = (
    "WHERE notebook_id IN (SELECT n.id FROM submitted_notebook n JOIN submitted_assignment a "
    "ON n.assignment_id = a.id WHERE a.student_id = 'ada')"
)
_HALVE_CELL = f"cell_id IN (SELECT id FROM base_cell WHERE name = '{HALVE}')"


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda out: edit(out / "grades.csv", '^"ada",.*\n', ""), "grades.csv has no row of it"),
        (
            lambda out: edit(out / "grades.csv", f'^"ada","{LAB}","{HALVE}",.*\n', ""),
            "grades.csv has rows of lab05-double, lab05-explain, but expected",
        ),
        (
            lambda out: edit(out / "grades.csv", f'^("ada","{LAB}","{HALVE}",.*\n)', r"\1\1"),
            "grades.csv has rows of lab05-double, lab05-halve, lab05-halve, lab05-explain",
        ),
        (
            lambda out: edit(out / "grades.csv", f'^("ada","{LAB}","{HALVE}"),"0",', r'\1,"",'),
            "the score '' of '1', which doesn't fit its status incorrect",
        ),
        (
            lambda out: edit(out / "grades.csv", f'^("ada","{LAB}","{HALVE}"),"0",', r'\1,"7",'),
            "the score '7' of '1', which doesn't fit",
        ),
        (
            lambda out: edit(out / "grades.csv", f'^("ada","{LAB}","{HALVE}"),"0",', r'\1,"1",'),
            "the gradebook has the score '0' of lab05-halve, but grades.csv has '1'",
        ),
        (
            lambda out: edit(
                out / "grades.csv", f'^("ada","{LAB}","{HALVE}","0","1"),"incorrect"', r'\1,"lost"'
            ),
            "an unknown status, 'lost'",
        ),
        (lambda out: (out / "feedback/ada" / f"{LAB}.html").unlink(), "it has no feedback page"),
        (
            lambda out: edit(out / "feedback/ada" / f"{LAB}.html", "</html>\n", ""),
            "is incomplete",
        ),
        (
            lambda out: query(out, f"DELETE FROM grade {_OF_ADA}"),
            "the gradebook has no entry of it",
        ),
        (
            lambda out: query(out, f"DELETE FROM grade {_OF_ADA} AND {_HALVE_CELL}"),
            "the gradebook has no grade of lab05-halve",
        ),
    ],
)
def test_each_gap_is_found_and_named(out: Path, harm: Callable[[Path], None], said: str) -> None:
    harm(out)
    problems = audit(OutFolder(out))
    assert problems
    assert all(problem.startswith(f"ada, {LAB}: ") for problem in problems)
    assert all(problem.endswith("run `autograder grade` again") for problem in problems)
    assert said in problems[0]


def test_a_submission_that_has_no_end_is_found(out: Path) -> None:
    taken = json.loads((out / "taken.json").read_text())
    (out / "taken.json").write_text(json.dumps([*taken, ["gus", LAB]]))
    assert [problem.partition("; ")[0] for problem in audit(OutFolder(out))] == [
        f"gus, {LAB}: grades.csv has no row of it",
        f"gus, {LAB}: the gradebook has no entry of it",
        f"gus, {LAB}: it has no feedback page",
    ]


def test_a_row_of_nobody_who_was_taken_in_is_found(out: Path) -> None:
    taken = json.loads((out / "taken.json").read_text())
    (out / "taken.json").write_text(json.dumps(taken[1:]))
    (problem,) = audit(OutFolder(out))
    assert problem.startswith(f"ada, {LAB}: grades.csv has rows of it, but it was never read")


@pytest.mark.parametrize("lost", ["grades.csv", "gradebook.db"])
def test_a_lost_file_is_named_with_the_remedy(out: Path, lost: str) -> None:
    (out / lost).unlink()
    (problem,) = audit(OutFolder(out))
    assert f"{out / lost} is missing" in problem
    assert "`autograder repair " in problem


def test_a_folder_in_which_nothing_was_graded_does_not_pass(tmp_path: Path) -> None:
    (problem,) = audit(OutFolder(tmp_path))
    assert "holds no grades yet" in problem
    assert "`autograder grade LAB --submitted SUBMITTED --out OUT`" in problem
