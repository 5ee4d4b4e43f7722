"""What a student has for a lab in the end: manual points and lateness included."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.base.damage import Damaged
from autograder.model.lateness import ON_TIME, Lateness
from autograder.model.status import NEEDS, NOT_SUBMITTED, status_of
from autograder.model.submission import SubmissionKey
from autograder.rules.semester import Student, read_semester
from autograder.store.out_folder import OutFolder
from autograder.store.roll import counted, lateness, taken
from autograder.store.scores import final_scores
from autograder.store.small_files import COUNTED

__all__ = ["Standing", "people", "standings"]

Row = Mapping[str, str]


@dataclass(frozen=True)
class Standing:
    """What one student has for a lab, lateness aside."""

    #: The student and the lab.
    key: SubmissionKey
    #: The points, before lateness takes some of them off.
    points: float
    #: The most points there are, without what needs a GPU and was graded without one, and without
    #: what the course counts as a bonus or not at all.
    of: float
    #: What being late costs.
    late: Lateness = ON_TIME
    #: The most points of what has a score so far.
    scored: float = 0.0
    #: The questions that wait for manual grading.
    waiting: tuple[str, ...] = ()
    #: False if the student submitted nothing.
    submitted: bool = True
    #: Which release the submission says it is of; empty if it does not say.
    release: str = ""
    #: Those of the points that lie beyond the core.
    stretch: float = 0.0

    @property
    def core(self) -> float:
        return self.points - self.stretch

    @property
    def final(self) -> float:
        return self.late.left_of(self.points)


def standings(out: OutFolder) -> dict[SubmissionKey, Standing]:
    """Return the standing of each student at each lab that `out`/grades.csv has, in its order.

    Points are the gradebook's: manual ones if there are any, else the grader's.
    """
    scores, late = final_scores(out), lateness(out)
    rows_of = _rows(out.grades)
    _require_chosen(out, {key.lab for key in rows_of}, counted(out))
    found = {}
    for key, rows in rows_of.items():
        found[key] = _standing(key, rows, scores.get(key, {}), late.get(key, ON_TIME))
    return found


def people(out: OutFolder, students: Sequence[str]) -> dict[str, Student]:
    """Return the roster's row of each student; one with the id alone for those not on it."""
    roster = {student.id: student for student in read_semester(out, None).roster}
    return {name: roster.get(name, Student(name)) for name in students}


def _require_chosen(out: OutFolder, labs: Collection[str], off: Collection[str]) -> None:
    """Raise Damaged if there are attempts at a lab, and nothing says which of them count."""
    for folder in out.attempts():
        for _, lab in taken(folder):
            if lab in labs and lab not in off:
                why = f"does not say which attempts at {lab} count"
                raise Damaged(COUNTED.path(out), why, COUNTED.expected)


def _standing(
    key: SubmissionKey,
    rows: Sequence[Row],
    scores: Mapping[str, float | None],
    late: Lateness,
) -> Standing:
    points = scored = open_points = stretch = 0.0
    waiting = []
    submitted = any(status_of(row["status"]) != NOT_SUBMITTED for row in rows)
    for row in rows:
        score = scores.get(row["task"]) if submitted else 0.0
        if score is not None:
            points, scored = points + score, scored + float(row["max_score"])
            stretch += score if row.get("kind") == "stretch" else 0.0
        elif status_of(row["status"]) not in {*NEEDS, "left_out"}:
            waiting.append(row["task"])
            open_points += float(row["max_score"])
    return Standing(
        key,
        points,
        scored + open_points,
        late,
        scored,
        waiting=tuple(waiting),
        submitted=submitted,
        release=rows[0].get("release", ""),
        stretch=stretch,
    )


def _rows(path: Path) -> dict[SubmissionKey, list[Row]]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; run `autograder grade`")
    rows: dict[SubmissionKey, list[Row]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows[SubmissionKey(row["student"], row["lab"])].append(row)
    return rows
