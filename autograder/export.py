"""Grades as a table: grades.csv for machines, a summary for a terminal."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from autograder.files import write_whole
from autograder.questions import COURSE, Question, questions_of
from autograder.result import Result
from autograder.task import Verdict

__all__ = [
    "COLUMNS",
    "FOR_A_PERSON",
    "JUDGED",
    "NOT_HANDED_IN",
    "cell_text",
    "points",
    "said",
    "summary",
    "write_grades",
]

COLUMNS = ("student", "lab", "task", "score", "max_score", "status", "mistake", "message")
FOR_A_PERSON = "for_a_person"
NOT_HANDED_IN = "not_handed_in"
JUDGED = frozenset({"right", "partly", "wrong"})  # the others have no score

_FORMULA = ("=", "+", "-", "@")
_WIDTH = 80
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
    ran outside the sandbox begin with "NOT ISOLATED: ". `root` holds the course's `solutions`.

    The file is UTF-8, with a line feed after each row; the same results give the same bytes. A
    text that begins with = + - or @, which a spreadsheet would run as a formula, has an apostrophe
    put before it; tabs, returns and other control characters are spaces, none at its ends. Scores
    are plain numbers.
    """
    questions = questions_of((result.lab for result in results), root)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows = {(r.student, r.lab): _rows(r, questions[r.lab]) for r in results}
    rows |= {key: _missing_rows(*key, questions[key[1]]) for key in missing}
    for key in sorted(rows):
        writer.writerows(rows[key])
    write_whole(path, text.getvalue().encode())


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
        elif question.by_person:
            status, message = FOR_A_PERSON, "An answer in words, which a person reads."
        elif verdict is None:
            status, message = "could_not_judge", _NO_VERDICT
        else:
            status, message, mistake = verdict.status, verdict.message, verdict.mistake or ""
            score = points(verdict.points) if status in JUDGED else ""
        texts = (cell_text(t) for t in (status, mistake, said(result, message)))
        names = (cell_text(t) for t in (result.student, result.lab, question.id))
        yield (*names, score, points(question.points), *texts)


def _missing_rows(
    student: str, lab: str, questions: Sequence[Question]
) -> Iterator[tuple[str, ...]]:
    for question in questions:
        names = (cell_text(t) for t in (student, lab, question.id))
        yield (*names, "0", points(question.points), NOT_HANDED_IN, "", "Nothing was handed in.")


def cell_text(text: str) -> str:
    r"""Return a text on one line that no spreadsheet takes for a formula, as grades.csv holds it.

    >>> cell_text("=1+1"), cell_text("\t@a\nb"), cell_text("a - b")
    ("'=1+1", "'@a b", 'a - b')
    """
    line = "".join(c if c.isprintable() else " " for c in text).strip()
    return f"'{line}" if line.startswith(_FORMULA) else line


def summary(results: Sequence[Result], root: Path = COURSE) -> str:
    """Return the results as lines of at most 80 columns: points, counts, what a person has to do.

    Points are those of what was judged: what could not be, or needs a GPU, or is an answer in
    words is in neither the points nor their maximum.
    """
    questions = questions_of((result.lab for result in results), root)
    ordered = sorted(results, key=lambda r: (r.student, r.lab))
    table = [("student", "lab", "points", "left open"), *(_line(r, questions) for r in ordered)]
    widths = [min(max(len(row[i]) for row in table), limit) for i, limit in enumerate((24, 24, 11))]
    lines = [_aligned(row, widths) for row in table]
    lines.insert(1, "-" * min(_WIDTH, max(map(len, lines))))
    return "\n".join([*lines, "", *_totals(results, questions)])


def _line(result: Result, questions: Mapping[str, Sequence[Question]]) -> tuple[str, ...]:
    if result.end != "graded":
        return (result.student, result.lab, "-", f"{result.end}: {cell_text(result.reason)}")
    judged = [v for v in result.verdicts if v.status in JUDGED]
    score = f"{points(sum(v.points for v in judged))} / {points(sum(v.max_points for v in judged))}"
    open_ = _counted(_open(result, questions[result.lab]))
    mark = "" if result.isolated else "NOT ISOLATED "
    return (result.student, result.lab, score, mark + open_)


def _open(result: Result, questions: Sequence[Question]) -> Counter[str]:
    """How many questions of a graded submission still lack points, by the reason."""
    verdicts: dict[str, Verdict] = {verdict.task: verdict for verdict in result.verdicts}
    reasons: Counter[str] = Counter()
    for question in questions:
        verdict = verdicts.get(question.id)
        if question.by_person:
            reasons["in words"] += 1
        elif verdict is None or verdict.status == "could_not_judge":
            reasons["not judged"] += 1
        elif verdict.status == "needs_gpu":
            reasons["needs GPU"] += 1
    return reasons


def _totals(results: Sequence[Result], questions: Mapping[str, Sequence[Question]]) -> list[str]:
    ends = Counter[str](result.end for result in results)
    statuses = Counter[str](v.status for r in results for v in r.verdicts)
    graded = [result for result in results if result.end == "graded"]
    left = sum((_open(result, questions[result.lab]) for result in graded), Counter[str]())
    lines = [
        f"Submissions: {_counted(ends, ('graded', 'quarantined', 'failed'), len(results))}",
        f"Exercises:   {_counted(statuses, ('right', 'partly', 'wrong'))}",
        f"For a person: {_counted(left, ('in words', 'not judged')) or 'nothing'}",
    ]
    if left["needs GPU"]:
        lines.append(f"Left out of the points: {left['needs GPU']} that need a GPU")
    unsafe = sum(not result.isolated for result in results)
    if unsafe:
        lines.append(f"NOT ISOLATED: {unsafe} submissions ran outside the sandbox")
    return lines


def _counted(
    counts: Mapping[str, int], names: Sequence[str] | None = None, total: int | None = None
) -> str:
    parts = [f"{counts[n]} {n}" for n in names or sorted(counts) if counts.get(n)]
    if total is not None:
        parts.insert(0, f"{total} in all")
    return ", ".join(parts)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [_cut(text, width).ljust(width) for text, width in zip(row, widths, strict=False)]
    cells[2] = cells[2].strip().rjust(widths[2])
    return _cut("  ".join([*cells, row[-1]]), _WIDTH).rstrip()


def _cut(text: str, width: int) -> str:
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= width else text[: width - 3] + "..."
