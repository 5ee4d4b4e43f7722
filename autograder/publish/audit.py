"""Checks, before grades leave, that no submission is missing from them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from autograder.base.course import Course
from autograder.base.csv_table import cell_text
from autograder.base.damage import Damaged, is_there
from autograder.model.status import MANUAL, NEEDS, NOT_SUBMITTED, SCORED, shown
from autograder.model.submission import SubmissionKey
from autograder.notebooks.binder import bind
from autograder.notebooks.questions import Question, questions_in, questions_of, read_notebooks
from autograder.publish.grades_csv import points
from autograder.publish.grades_table import Row, read_grades
from autograder.rules.semester import read_semester
from autograder.store.gradebook_file import has_tables
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from autograder.store.roll import absent, taken
from autograder.store.scores import scores_in
from autograder.store.whole_files import is_page

__all__ = ["audit", "changed_questions", "questions_then"]

_NOT_JUDGED = {*NEEDS, "could_not_judge", "left_out", MANUAL, "quarantined", "failed"}
_AGAIN = "run `autograder grade` again"


def audit(out: OutFolder) -> list[str]:
    """Return a sentence for each gap in `out`; empty if every submission is complete.

    Every submission that was taken in needs a row for each question in grades.csv, the same scores
    in the gradebook, and a complete feedback page. Rows of a submission that was never taken in are
    also reported.
    """
    submissions = taken(out)
    if not submissions:
        return [
            f"{out} holds no grades yet; expected the folder given to `autograder grade LAB "
            f"--submitted SUBMITTED --out OUT`; {_AGAIN} with the submissions' folder"
        ]
    questions = {lab: questions_then(out, lab) for lab in sorted({key.lab for key in submissions})}
    files = [out.grades, *(out.source(lab) for lab in questions)]
    lost = [path for path in files if not is_there(path)]
    lost += [] if has_tables(out) else [out.gradebook]
    journal = Journal(out)
    if lost and out.feedback_pages():  # something was published
        repair = f"`autograder repair {shlex.quote(str(out))}`"
        return [f"{path} is missing or empty; {repair} rebuilds it" for path in lost]
    rows = read_grades(out)
    scores = scores_in(out)
    problems = []
    for key in submissions:
        own = rows.pop(_as_written(key), [])
        if journal.verdicts(key) is None and is_there(out.entry(key)):
            problems.append(f"{key}: {out.entry(key)} is damaged; {_AGAIN}")
            continue
        found = (
            *_table_gaps(own, questions[key.lab]),
            *_gradebook_gaps(own, scores.get(key, {}), questions[key.lab]),
            *_page_gaps(out.feedback_page(key)),
        )
        problems += [f"{key}: {gap}; {_AGAIN}" for gap in found]
    for key in absent(out, [student.id for student in read_semester(out, None).roster]):
        own = rows.pop(_as_written(key), [])
        if {row["status"] for row in own} != {NOT_SUBMITTED}:
            problems.append(f"{key}: on the roster, but not in grades.csv; {_AGAIN}")
    problems += [
        f"{key}: grades.csv has rows of it, but it was never read; {_AGAIN}" for key in rows
    ]
    return problems


def questions_then(out: OutFolder, lab: str) -> tuple[Question, ...]:
    """Return a lab's questions as of the last write to `out`; empty if it was never written."""
    folder = out.source(lab)
    try:
        notebooks = read_notebooks(folder)
        return questions_in(bind(notebooks, alone=len(notebooks) == 1)) if notebooks else ()
    except (ValueError, OSError, AttributeError, KeyError, TypeError) as error:
        raise Damaged(folder, f"is damaged ({error})", "the lab as it was graded") from error


def changed_questions(out: OutFolder, lab: str, course: Course) -> list[str]:
    """Return the questions that only the lab, or only its grades in `out`, have; empty if none."""
    then = {question.id for question in questions_then(out, lab)}
    now = {question.id for question in questions_of([lab], course)[lab]}
    return sorted(then ^ now) if then else []


def _table_gaps(rows: Sequence[Row], questions: Sequence[Question]) -> Iterator[str]:
    if not rows:
        yield "grades.csv has no row of it"
        return
    expected = [question.id for question in questions]
    got = [row["task"] for row in rows]
    if got != expected:
        yield f"grades.csv has rows of {', '.join(got)}, but expected {', '.join(expected)}"
    most = {question.id: question.points for question in questions}
    for row in rows:
        judged = row["status"] in SCORED
        if not judged and row["status"] not in _NOT_JUDGED:
            yield f"grades.csv gives {row['task']} an unknown status, {row['status']!r}"
        elif judged != _is_score(row, most.get(row["task"], 0.0)):
            yield (
                f"grades.csv gives {row['task']} the score {row['score']!r} of "
                f"{row['max_score']!r}, which doesn't fit its status {shown(row['status'])}"
            )


def _is_score(row: Row, most: float) -> bool:
    """Whether the row has a score within its question's points; a bonus has `max_score` 0."""
    try:
        return 0 <= float(row["score"]) <= most and float(row["max_score"]) in (0.0, most)
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


def _as_written(key: SubmissionKey) -> SubmissionKey:
    """The names as written in the table, where no cell is a formula."""
    return SubmissionKey(cell_text(key.student), cell_text(key.lab))


def _page_gaps(path: Path) -> Iterator[str]:
    if not path.is_file():
        yield "it has no feedback page"
    elif not is_page(path):
        yield f"its feedback page {path} is incomplete"
