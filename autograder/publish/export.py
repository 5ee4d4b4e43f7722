"""Writes grades.csv: one row for each question of each submission."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from autograder.base.csv_table import csv_bytes
from autograder.base.files import write_whole
from autograder.model.result import Result
from autograder.notebooks.questions import COURSE, Question, questions_of

__all__ = [
    "COLUMNS",
    "FOR_A_PERSON",
    "JUDGED",
    "NOT_HANDED_IN",
    "points",
    "said",
    "write_grades",
]

COLUMNS = (
    *("student", "lab", "task", "score", "max_score", "status", "mistake", "message"),
    "release",
)
FOR_A_PERSON = "for_a_person"
NOT_HANDED_IN = "not_handed_in"
JUDGED = frozenset({"right", "partly", "wrong"})  # the others have no score

_NOTHING = "Nothing was handed in."
_NO_VERDICT = "The grader returned no verdict on this exercise; a person has to look."


def write_grades(
    results: Sequence[Result],
    path: Path,
    root: Path = COURSE,
    missing: Iterable[tuple[str, str]] = (),
) -> None:
    """Write one row for each question of each submission to the CSV file `path`, in one step.

    Each student and lab in `missing`, of which nothing was handed in, has rows too, with 0 points
    and the status `not_handed_in`.

    Rows go by student, lab, and place in the lab's notebook. `status` is a verdict's status;
    `for_a_person` for an answer in words; or `quarantined` or `failed` for every question of such
    a submission, with the reason. `score` is empty where nothing was judged. Messages of code that
    ran outside the sandbox begin with "NOT ISOLATED: ". `release` is the one that the submission
    says it is of, empty where it does not say. `root` holds the course's `solutions`.

    The same results give the same bytes, in the form of `csv_table`: no text is a formula to a
    spreadsheet. Scores are plain numbers.
    """
    questions = questions_of((result.lab for result in results), root)
    rows = {(r.student, r.lab): _rows(r, questions[r.lab]) for r in results}
    rows |= {key: _missing_rows(*key, questions[key[1]]) for key in missing}
    write_whole(path, csv_bytes(chain([COLUMNS], *(rows[key] for key in sorted(rows)))))


def said(result: Result, message: str) -> str:
    """Return a message, marked where the result's code ran outside the sandbox."""
    return message if result.isolated else f"NOT ISOLATED: {message}"


def points(value: float) -> str:
    """Return points as people write them, `4` and `1.5`, the same from run to run."""
    return f"{value:.6g}"


def _rows(result: Result, questions: Sequence[Question]) -> Iterator[tuple[str, ...]]:
    verdicts = {verdict.task: verdict for verdict in result.verdicts}
    for question in questions:
        verdict = verdicts.get(question.id)
        score, mistake = "", ""
        if result.end != "graded":
            status, message = str(result.end), result.reason
        elif question.by_person and verdict is None:
            status, message = FOR_A_PERSON, "An answer in words, which a person reads."
        elif verdict is None:
            status, message = "could_not_judge", _NO_VERDICT
        else:
            status, message, mistake = verdict.status, verdict.message, verdict.mistake or ""
            score = points(verdict.points) if status in JUDGED else ""
        names = (result.student, result.lab, question.id)
        texts = (status, mistake, said(result, message), result.release)
        yield (*names, score, points(question.points), *texts)


def _missing_rows(
    student: str, lab: str, questions: Sequence[Question]
) -> Iterator[tuple[str, ...]]:
    for question in questions:
        of = points(question.points)
        yield (student, lab, question.id, "0", of, NOT_HANDED_IN, "", _NOTHING, "")
