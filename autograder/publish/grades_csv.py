"""Writes grades.csv: one row for each question of each submission."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain

from autograder.base.course import COURSE, Course
from autograder.base.csv_table import csv_bytes
from autograder.base.files import write_whole
from autograder.model.result import Result
from autograder.model.status import MANUAL, NOT_SUBMITTED, SCORED, shown
from autograder.model.submission import SubmissionKey
from autograder.model.task import Verdict
from autograder.notebooks.questions import Question, questions_of
from autograder.rules.counting import Counting
from autograder.store.out_folder import OutFolder

__all__ = [
    "ALL_COUNTS",
    "COLUMNS",
    "Row",
    "judgement",
    "points",
    "said",
    "write_grades",
]

ALL_COUNTS = Counting()
_NOTHING = "Nothing was submitted."
_NO_VERDICT = "The grader returned no verdict on this exercise. Your instructor will look at it."
_MANUAL = "Your instructor grades this answer."


@dataclass(frozen=True)
class Row:
    """One question of one submission, with a column's text in each field."""

    #: The student's id.
    student: str
    #: The lab's name.
    lab: str
    #: The exercise's id.
    task: str
    #: The points; empty if nothing was judged.
    score: str
    #: The most points that count; 0 if the exercise is a bonus or left out.
    max_score: str
    #: The status as people read it, such as *correct*.
    status: str
    #: The id of the recognised mistake; empty if there is none.
    mistake: str
    #: What the student reads.
    message: str
    #: The release that the submission names; empty if it names none.
    release: str
    #: Core or stretch.
    kind: str


COLUMNS = tuple(field.name for field in fields(Row))


def write_grades(
    results: Sequence[Result],
    out: OutFolder,
    course: Course = COURSE,
    missing: Iterable[SubmissionKey] = (),
    counting: Counting = ALL_COUNTS,
) -> None:
    """Write one row for each question of each submission to grades.csv, in one step.

    Each of the `missing` submissions has rows too, with 0 points and the status *not submitted*.

    Rows are sorted by student, lab, and place in the lab's notebook. `status` is a verdict's status
    in words; *manual grading* for an answer that the instructor grades; or *quarantined* or
    *grading failed*, with the reason, for every question of such a submission. `score` is empty if
    nothing was judged. Messages of code that ran outside the sandbox start with "NOT ISOLATED: ".
    `release` is the one that the submission names; empty if it names none. `kind` is core or
    stretch. `max_score` is 0 for exercises that `counting` makes a bonus or leaves out; the latter
    have the status *left out* and no score.

    The same results give the same bytes. Scores are plain numbers, and spreadsheets won't take any
    text for a formula (`csv_table`).
    """
    questions = questions_of((result.lab for result in results), course)
    rows = {result.key: _rows(result, questions[result.lab], counting) for result in results}
    rows |= {key: _missing_rows(key, questions[key.lab], counting) for key in missing}
    cells = (
        [getattr(row, column) for column in COLUMNS] for key in sorted(rows) for row in rows[key]
    )
    write_whole(out.grades, csv_bytes(chain([COLUMNS], cells)))


def said(result: Result, message: str) -> str:
    """Return a message, marked if the result's code ran outside the sandbox."""
    return message if result.isolated else f"NOT ISOLATED: {message}"


def points(value: float) -> str:
    """Return points as people write them, `4` or `1.5`, always in the same format."""
    return f"{value:.6g}"


def judgement(question: Question, result: Result, verdict: Verdict | None) -> tuple[str, str]:
    """Return the status of a question, by id, and the message about it."""
    if result.end != "graded":
        return result.end, result.reason
    if verdict is not None:
        return verdict.status, verdict.message
    return (MANUAL, _MANUAL) if question.is_manual else ("could_not_judge", _NO_VERDICT)


def _rows(result: Result, questions: Sequence[Question], counting: Counting) -> Iterator[Row]:
    verdicts = {verdict.task: verdict for verdict in result.verdicts}
    for question in questions:
        verdict = verdicts.get(question.id)
        status, message = judgement(question, result, verdict)
        yield Row(
            student=result.student,
            lab=result.lab,
            task=question.id,
            score=points(verdict.points) if verdict is not None and status in SCORED else "",
            max_score=points(counting.max_points(result.lab, question)),
            status=shown(status),
            mistake=(verdict.mistake or "") if verdict is not None else "",
            message=said(result, message),
            release=result.release,
            kind=_kind(question),
        )


def _missing_rows(
    key: SubmissionKey, questions: Sequence[Question], counting: Counting
) -> Iterator[Row]:
    for question in questions:
        yield Row(
            student=key.student,
            lab=key.lab,
            task=question.id,
            score="0",
            max_score=points(counting.max_points(key.lab, question)),
            status=shown(NOT_SUBMITTED),
            mistake="",
            message=_NOTHING,
            release="",
            kind=_kind(question),
        )


def _kind(question: Question) -> str:
    return "stretch" if question.is_stretch else "core"
