"""What a student has for a lab in the end: manual points and lateness included."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.base.damage import Damaged
from autograder.publish.export import NOT_HANDED_IN
from autograder.rules.semester import Student, read_semester
from autograder.store.database import final_scores
from autograder.store.roll import attempt_folders, counted, taken
from autograder.store.small_files import COUNTED

__all__ = ["Standing", "people", "standings"]

Row = Mapping[str, str]


@dataclass(frozen=True)
class Standing:
    """One student's lab: `points` of `of`, before lateness takes `percent_off` of them.

    `of` leaves out what could not be judged for want of a GPU. `waiting` are the questions that a
    person still has to give points for, `release` the one that the submission says it is of.
    """

    student: str
    lab: str
    points: float
    of: float
    percent_off: float = 0.0
    waiting: tuple[str, ...] = ()
    handed_in: bool = True
    release: str = ""

    @property
    def final(self) -> float:
        return self.points * (1 - self.percent_off / 100)


def standings(out: Path) -> dict[tuple[str, str], Standing]:
    """Return the standing of each student at each lab that `out`/grades.csv has, in its order.

    Points are the gradebook's: a person's where one gave any, the grader's else.
    """
    scores, off = final_scores(out), counted(out)
    rows_of = _rows(out / "grades.csv")
    _require_chosen(out, {lab for _, lab in rows_of}, off)
    found = {}
    for (student, lab), rows in rows_of.items():
        own = scores.get((student, lab), {})
        percent = off.get(lab, {}).get(student, {}).get("percent_off", 0.0)
        found[student, lab] = _standing(student, lab, rows, own, percent)
    return found


def people(out: Path, students: Sequence[str]) -> dict[str, Student]:
    """Return the roster's row of each student; one with the id alone for those not on it."""
    roster = {student.id: student for student in read_semester(out, None).roster}
    return {name: roster.get(name, Student(name)) for name in students}


def _require_chosen(out: Path, labs: Collection[str], off: Collection[str]) -> None:
    """Raise Damaged if there are attempts at a lab, and nothing says which of them count."""
    for folder in attempt_folders(out):
        for _, lab in taken(folder):
            if lab in labs and lab not in off:
                why = f"does not say which attempts at {lab} count"
                raise Damaged(COUNTED.path(out), why, COUNTED.expected)


def _standing(
    student: str,
    lab: str,
    rows: Sequence[Row],
    scores: Mapping[str, float | None],
    percent_off: float,
) -> Standing:
    points = of = 0.0
    waiting = []
    handed_in = any(row["status"] != NOT_HANDED_IN for row in rows)
    for row in rows:
        score = scores.get(row["task"]) if handed_in else 0.0
        if score is not None:
            points, of = points + score, of + float(row["max_score"])
        elif row["status"] != "needs_gpu":
            waiting.append(row["task"])
            of += float(row["max_score"])
    release = rows[0].get("release", "")
    return Standing(student, lab, points, of, percent_off, tuple(waiting), handed_in, release)


def _rows(path: Path) -> dict[tuple[str, str], list[Row]]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}; `autograder grade` writes it")
    rows: dict[tuple[str, str], list[Row]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows[row["student"], row["lab"]].append(row)
    return rows
