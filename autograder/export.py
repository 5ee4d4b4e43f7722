"""Grades as a table, grades.csv: one row for each question of each submission."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from autograder.files import write_whole
from autograder.questions import COURSE, Question, questions_of
from autograder.result import Result

__all__ = [
    "COLUMNS",
    "FOR_A_PERSON",
    "JUDGED",
    "NOT_HANDED_IN",
    "cell_text",
    "no_formula",
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

# The full-width ones begin a formula where a spreadsheet is set to Japanese or Chinese.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
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

    The file is UTF-8, with a line feed after each row; the same results give the same bytes. A
    text that begins with = + - or @, as wide as usual or full width, which a spreadsheet would run
    as a formula, has an apostrophe put before it; tabs, returns and other control characters are
    spaces, none at its ends. Scores are plain numbers.
    """
    questions = questions_of((result.lab for result in results), root)
    data = io.BytesIO()  # StringIO would take four bytes a character
    text = io.TextIOWrapper(data, "utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows = {(r.student, r.lab): _rows(r, questions[r.lab]) for r in results}
    rows |= {key: _missing_rows(*key, questions[key[1]]) for key in missing}
    for key in sorted(rows):
        writer.writerows(rows[key])
    text.flush()
    write_whole(path, data.getvalue())


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
        texts = (cell_text(t) for t in (status, mistake, said(result, message)))
        names = (cell_text(t) for t in (result.student, result.lab, question.id))
        yield (*names, score, points(question.points), *texts, cell_text(result.release))


def _missing_rows(
    student: str, lab: str, questions: Sequence[Question]
) -> Iterator[tuple[str, ...]]:
    for question in questions:
        names = (cell_text(t) for t in (student, lab, question.id))
        yield (*names, "0", points(question.points), NOT_HANDED_IN, "", _NOTHING, "")


def cell_text(text: str) -> str:
    r"""Return a text on one line that no spreadsheet takes for a formula, as grades.csv holds it.

    >>> cell_text("=1+1"), cell_text("\t@a\nb"), cell_text("a - b")
    ("'=1+1", "'@a b", 'a - b')
    """
    return no_formula("".join(c if c.isprintable() else " " for c in text).strip())


def no_formula(text: str) -> str:
    """Return the text with an apostrophe before it where a spreadsheet would run it."""
    return f"'{text}" if text.startswith(_FORMULA) else text
