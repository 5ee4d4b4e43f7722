"""The gate before grades leave: checks that no submission is missing from them."""

from __future__ import annotations

import csv
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from autograder.base.course_layout import read_notebooks
from autograder.base.csv_table import cell_text
from autograder.base.damage import Damaged, is_there
from autograder.base.files import inside
from autograder.notebooks.binder import bind
from autograder.notebooks.questions import Question, questions_in
from autograder.publish.export import COLUMNS, FOR_A_PERSON, JUDGED, NOT_HANDED_IN, points
from autograder.rules.semester import read_semester
from autograder.store.database import scores_in
from autograder.store.gradebook_file import gradebook_path, has_tables
from autograder.store.journal import Journal
from autograder.store.roll import absent, taken

__all__ = ["audit", "questions_then"]

_NOT_JUDGED = {"needs_gpu", "could_not_judge", FOR_A_PERSON, "quarantined", "failed"}
_AGAIN = "run `autograder grade` again"
_LOOKED_AT = ("task", "status", "score", "max_score")  # columns of grades.csv

Key = tuple[str, str]
Row = dict[str, str]


def audit(out: Path) -> list[str]:
    """Return a sentence for each gap in `out`; none means that every submission has its end.

    Every submission that was taken in has to have a row for each question in grades.csv, the same
    scores in the gradebook, and a whole feedback page. Rows of nobody who was taken in are gaps of
    the list that was taken in, and are named too.
    """
    submissions = taken(out)
    if not submissions:
        return [
            f"{out} holds no grades yet; expected the folder given to `autograder grade LAB "
            f"--submitted SUBMITTED --out OUT`; {_AGAIN} with the submissions' folder"
        ]
    questions = {lab: questions_then(out, lab) for lab in sorted({lab for _, lab in submissions})}
    files = [out / "grades.csv", *(out / "source" / lab for lab in questions)]
    lost = [path for path in files if not is_there(path)]
    lost += [] if has_tables(out) else [gradebook_path(out)]
    journal = Journal(out)
    if lost and any(out.glob("feedback/*/*.html")):  # something was published
        repair = f"`autograder repair {shlex.quote(str(out))}`"
        return [f"{path} is missing or empty; {repair} rebuilds it" for path in lost]
    rows = _rows(out / "grades.csv")
    scores = scores_in(out)
    problems = []
    for student, lab in submissions:
        name = f"{student}, {lab}"
        own = rows.pop((cell_text(student), cell_text(lab)), [])
        if journal.verdicts(lab, student) is None and is_there(journal.path(lab, student)):
            problems.append(f"{name}: {journal.path(lab, student)} is damaged; {_AGAIN}")
            continue
        found = (
            *_table_gaps(own, questions[lab]),
            *_gradebook_gaps(own, scores.get((student, lab), {}), questions[lab]),
            *_page_gaps(out, student, lab),
        )
        problems += [f"{name}: {gap}; {_AGAIN}" for gap in found]
    for student, lab in absent(out, [student.id for student in read_semester(out, None).roster]):
        own = rows.pop((cell_text(student), cell_text(lab)), [])
        if {row["status"] for row in own} != {NOT_HANDED_IN}:
            problems.append(f"{student}, {lab}: on the roster, but not in grades.csv; {_AGAIN}")
    problems += [
        f"{student}, {lab}: grades.csv has rows of it, but it was never taken in; {_AGAIN}"
        for student, lab in rows
    ]
    return problems


def questions_then(out: Path, lab: str) -> tuple[Question, ...]:
    """Return the questions that a lab had when `out` was last written; none where it was not."""
    folder = inside(out, "source", lab)
    try:
        notebooks = read_notebooks(folder)
    except (ValueError, OSError, AttributeError, KeyError, TypeError) as error:
        raise Damaged(folder, f"is damaged ({error})", "the lab as it was graded") from error
    return questions_in(bind(notebooks, alone=len(notebooks) == 1)) if notebooks else ()


def _rows(path: Path) -> dict[Key, list[Row]]:
    rows: dict[Key, list[Row]] = {}
    if not is_there(path):
        return rows
    try:
        with path.open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file)
            if tuple(table.fieldnames or ()) != COLUMNS:
                raise ValueError(f"its first row is {table.fieldnames}")
            for row in table:
                # A large class has many rows: what is not looked at is left out, the rest shared.
                kept = {column: sys.intern(row.get(column) or "") for column in _LOOKED_AT}
                key = (sys.intern(row.get("student") or ""), sys.intern(row.get("lab") or ""))
                rows.setdefault(key, []).append(kept)
    except (ValueError, OSError, csv.Error) as error:
        raise Damaged(path, f"is damaged ({error})", "the table of all grades") from error
    return rows


def _table_gaps(rows: Sequence[Row], questions: Sequence[Question]) -> Iterator[str]:
    if not rows:
        yield "grades.csv has no row of it"
        return
    expected = [question.id for question in questions]
    got = [row["task"] for row in rows]
    if got != expected:
        yield f"grades.csv has rows of {', '.join(got)}, but expected {', '.join(expected)}"
    for row in rows:
        judged = row["status"] in JUDGED
        if not judged and row["status"] not in _NOT_JUDGED:
            yield f"grades.csv gives {row['task']} the status {row['status']!r}, which is none"
        elif judged != _is_score(row):
            yield (
                f"grades.csv gives {row['task']} the score {row['score']!r} of "
                f"{row['max_score']!r}, which does not fit its status {row['status']}"
            )


def _is_score(row: Row) -> bool:
    try:
        return 0 <= float(row["score"]) <= float(row["max_score"])
    except ValueError:
        return False


def _gradebook_gaps(
    rows: Sequence[Row], scores: Mapping[str, float | None], questions: Sequence[Question]
) -> Iterator[str]:
    if not scores:
        yield "the gradebook has no entry of it"
        return
    table = {row["task"]: row["score"] for row in rows}
    for question in questions:
        if question.id not in scores:
            yield f"the gradebook has no grade of {question.id}"
            continue
        score = scores[question.id]
        written = "" if score is None else points(score)
        if question.id in table and table[question.id] != written:
            yield (
                f"the gradebook has the score {written!r} of {question.id}, "
                f"but grades.csv has {table[question.id]!r}"
            )


def _page_gaps(out: Path, student: str, lab: str) -> Iterator[str]:
    path = inside(out, "feedback", student, f"{lab}.html")
    if not path.is_file():
        yield "it has no feedback page"
    elif not path.read_bytes().endswith(b"</html>\n"):
        yield f"its feedback page {path} is not whole"
