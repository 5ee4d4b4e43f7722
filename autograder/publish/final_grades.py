"""Computes each student's final grade for a lab, with manual points and lateness."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from autograder.base.damage import Damaged
from autograder.model.lateness import ON_TIME, Lateness
from autograder.model.status import NEEDS, NOT_SUBMITTED
from autograder.model.submission import SubmissionKey
from autograder.publish.grades_table import Row, read_grades
from autograder.rules.semester import Student, read_semester
from autograder.store.out_folder import OutFolder
from autograder.store.roll import counted, lateness, taken
from autograder.store.scores import final_scores
from autograder.store.small_files import COUNTED

__all__ = ["Standing", "people", "standings"]


@dataclass(frozen=True)
class Standing:
    """One student's grade for a lab."""

    #: The student and the lab.
    key: SubmissionKey
    #: The points before any deduction for lateness.
    points: float
    #: The maximum points, without exercises that need a GPU and were graded without one,
    #: and without those that the course counts as a bonus or not at all.
    of: float
    #: The deduction for lateness.
    late: Lateness = ON_TIME
    #: The maximum points of the questions that have a score so far.
    scored: float = 0.0
    #: The questions that wait for manual grading.
    waiting: tuple[str, ...] = ()
    #: False if the student submitted nothing.
    submitted: bool = True
    #: The release that the submission names; empty if it names none.
    release: str = ""
    #: The part of the points from the stretch.
    stretch: float = 0.0

    @property
    def core(self) -> float:
        """The part of the points from the core."""
        return self.points - self.stretch

    @property
    def final(self) -> float:
        """The points after the deduction for lateness."""
        return self.late.left_of(self.points)


def standings(out: OutFolder) -> dict[SubmissionKey, Standing]:
    """Return the standing of each student at each lab in `out`/grades.csv, in its order.

    Points come from the gradebook: manual ones if there are any, else the grader's.
    """
    scores, late = final_scores(out), lateness(out)
    if not out.grades.is_file():
        raise FileNotFoundError(f"{out.grades} is missing; run `autograder grade`")
    rows_of = read_grades(out)
    _require_chosen(out, {key.lab for key in rows_of}, counted(out))
    found = {}
    for key, rows in rows_of.items():
        found[key] = _standing(key, rows, scores.get(key, {}), late.get(key, ON_TIME))
    return found


def people(out: OutFolder, students: Sequence[str]) -> dict[str, Student]:
    """Return each student's row of the roster; students not on it get a row with only the id."""
    roster = {student.id: student for student in read_semester(out, None).roster}
    return {name: roster.get(name, Student(name)) for name in students}


def _require_chosen(out: OutFolder, labs: Collection[str], off: Collection[str]) -> None:
    """Raise Damaged if a lab has attempts but no record of which ones count."""
    for folder in out.attempts():
        for _, lab in taken(folder):
            if lab in labs and lab not in off:
                why = f"doesn't say which attempts at {lab} count"
                raise Damaged(COUNTED.path(out), why, COUNTED.expected)


def _standing(
    key: SubmissionKey,
    rows: Sequence[Row],
    scores: Mapping[str, float | None],
    late: Lateness,
) -> Standing:
    points = scored = open_points = stretch = 0.0
    waiting = []
    submitted = any(row["status"] != NOT_SUBMITTED for row in rows)
    for row in rows:
        score = scores.get(row["task"]) if submitted else 0.0
        if score is not None:
            points, scored = points + score, scored + float(row["max_score"])
            stretch += score if row["kind"] == "stretch" else 0.0
        elif row["status"] not in {*NEEDS, "left_out"}:
            waiting.append(row["task"])
            open_points += float(row["max_score"])
    return Standing(
        key=key,
        points=points,
        of=scored + open_points,
        late=late,
        scored=scored,
        waiting=tuple(waiting),
        submitted=submitted,
        release=rows[0]["release"],
        stretch=stretch,
    )
