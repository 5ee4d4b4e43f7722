"""The rules of a course that an instructor writes down, in one file `OUT/semester.toml`.

It names the roster, when work was received, when it was due and for whom later, what being late
costs, which attempt counts, which tasks everybody is given, and how ordinary assignments are
scored. Without the file none of that applies. Every error names the file, the key, the value, and
what was expected.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from autograder.base.course import COURSE, Course
from autograder.base.damage import is_there
from autograder.model.scoring import SANE, Rules
from autograder.model.submission import SubmissionKey
from autograder.notebooks.intake import is_student_id
from autograder.rules.csv_input import rows
from autograder.rules.settings import TIME, Settings, read_time
from autograder.store.out_folder import OutFolder

__all__ = ["Late", "Receipt", "Semester", "Stretch", "Student", "read_semester"]

Attempts = Literal["last", "best", "on_time"]
_ATTEMPTS: tuple[Attempts, ...] = ("last", "best", "on_time")
Stretch = Literal["required", "bonus", "left_out"]
_STRETCH: tuple[Stretch, ...] = ("required", "bonus", "left_out")
_KEYS = (
    "attempts",
    "due",
    "extensions",
    "late",
    "left_out",
    "ordinary",
    "receipts",
    "roster",
    "stretch",
    "waived",
)
_LATE = ("grace_minutes", "most_percent", "percent_per_day")


@dataclass(frozen=True)
class Student:
    """A row of the roster. Only the id is always there."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""


@dataclass(frozen=True)
class Receipt:
    """When a submission was received, by a clock that its student can't set.

    `folder` is where below the submissions' folder this attempt lies; empty for the folder itself.
    """

    student: str
    lab: str
    received: datetime
    folder: str = ""


@dataclass(frozen=True)
class Late:
    """What being late costs: a percentage of the points for each day begun, up to `most_percent`.

    Up to `grace` after the due time nothing counts as late; beyond it, days count from the due
    time itself.
    """

    grace: timedelta = timedelta(0)
    percent_per_day: float = 0.0
    most_percent: float = 100.0


@dataclass(frozen=True)
class Semester:
    """A course's rules; `due` goes by lab, `extensions` by student and lab, `waived` by task.

    `stretch` says how what lies beyond the labs' cores counts; `left_out` has the tasks that don't
    count at all, each with its reason. `ordinary` are those that ordinary assignments are scored
    by.
    """

    attempts: Attempts = "last"
    due: Mapping[str, datetime] = field(default_factory=dict)
    late: Late = field(default_factory=Late)
    extensions: Mapping[SubmissionKey, datetime] = field(default_factory=dict)
    receipts: tuple[Receipt, ...] = ()
    roster: tuple[Student, ...] = ()
    waived: Mapping[str, str] = field(default_factory=dict)
    stretch: Stretch = "required"
    left_out: Mapping[str, str] = field(default_factory=dict)
    ordinary: Rules = SANE

    def due_for(self, student: str, lab: str) -> datetime | None:
        """Return when this student's work is due: the lab's time, or a later one granted."""
        times = (self.due.get(lab), self.extensions.get(SubmissionKey(student, lab)))
        return max((time for time in times if time is not None), default=None)


def read_semester(out: OutFolder, course: Course | None = COURSE) -> Semester:
    """Return the rules in `out`/semester.toml; those of an empty file where there is none.

    Labs and tasks have to be those of the course; without one their names are not looked at.

    Raises ValueError for a key, a value or a row that is not as expected, FileNotFoundError for a
    file that the settings name and that is not there.
    """
    path = out.semester
    if not is_there(path):
        return Semester()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read ({error.strerror}); expected a text file with your rules. Put "
            "it back from a copy, or remove what is there if no rules are to hold."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is not a TOML file ({error}); correct it, or put it back from a copy"
        ) from error
    settings = Settings(path, course)
    ordinary = settings.rules(settings.table(data, "ordinary"))
    settings.known(data, _KEYS)
    late = settings.table(data, "late")
    settings.known(late, _LATE, "late.")
    attempts = data.get("attempts", "last")
    if attempts not in _ATTEMPTS:
        raise settings.wrong("attempts", attempts, f"one of {', '.join(_ATTEMPTS)}")
    stretch = data.get("stretch", "required")
    if stretch not in _STRETCH:
        raise settings.wrong("stretch", stretch, f"one of {', '.join(_STRETCH)}")
    due = {lab: settings.time(lab, time) for lab, time in settings.table(data, "due").items()}
    if late and not due:
        raise settings.wrong("due", due, "a due time for each lab, since [late] is set")
    if due and "receipts" not in data:
        raise settings.wrong("receipts", None, "a file of receipt times, since [due] is set")
    return Semester(
        attempts=attempts,
        due=due,
        late=Late(
            timedelta(minutes=settings.number(late, "grace_minutes", 0.0, 7 * 24 * 60)),
            settings.number(late, "percent_per_day", 0.0, 100),
            settings.number(late, "most_percent", 100.0, 100),
        ),
        extensions=_extensions(settings.file(data, "extensions"), settings.labs, due),
        receipts=tuple(_receipts(settings.file(data, "receipts"), settings.labs)),
        roster=tuple(_roster(settings.file(data, "roster"))),
        waived=dict(settings.reasons(data, "waived", ordinary)),
        stretch=stretch,
        left_out=dict(settings.reasons(data, "left_out", ordinary)),
        ordinary=ordinary,
    )


def _roster(path: Path | None) -> Iterator[Student]:
    names = ("first_name", "last_name", "email", "lms_user_id")
    if path is None:
        return
    for where, row in rows(path, ("id",), names, key=("id",)):
        _check_student(where, "id", row["id"])
        yield Student(**row)


def _receipts(path: Path | None, labs: Collection[str] | None) -> Iterator[Receipt]:
    if path is None:
        return
    for where, row in rows(
        path, ("student", "lab", "received"), ("folder",), key=("student", "lab", "folder")
    ):
        _check_student(where, "student", row["student"])
        _check_lab(where, row["lab"], labs)
        if row["folder"] and not is_student_id(row["folder"]):
            raise ValueError(
                f"{where}: folder is {row['folder']!r}; expected the name of a folder in the "
                "submissions' folder: letters, digits, spaces and . _ - @"
            )
        received = _time(where, "received", row["received"])
        yield Receipt(row["student"], row["lab"], received, row["folder"])


def _extensions(
    path: Path | None, labs: Collection[str] | None, due: Mapping[str, datetime]
) -> dict[SubmissionKey, datetime]:
    granted: dict[SubmissionKey, datetime] = {}
    if path is None:
        return granted
    for where, row in rows(path, ("student", "lab", "due"), (), key=("student", "lab")):
        student, lab = row["student"], row["lab"]
        _check_student(where, "student", student)
        _check_lab(where, lab, labs)
        time = _time(where, "due", row["due"])
        if lab not in due:
            raise ValueError(f"{where}: {lab} has no due time; expected one under [due]")
        if time < due[lab]:
            raise ValueError(
                f"{where}: due is {row['due']!r}; expected a time after that of {lab}, "
                f"{due[lab].isoformat()}"
            )
        granted[SubmissionKey(student, lab)] = time
    return granted


def _check_student(where: str, column: str, value: str) -> None:
    if not is_student_id(value):
        raise ValueError(
            f"{where}: {column} is {value!r}; expected a student's id as the submissions' folders "
            "are named"
        )


def _check_lab(where: str, value: str, labs: Collection[str] | None) -> None:
    if labs is not None and value not in labs:
        raise ValueError(f"{where}: lab is {value!r}; expected one of {', '.join(labs)}")


def _time(where: str, column: str, value: str) -> datetime:
    time = read_time(value)
    if time is None or time.tzinfo is None:
        raise ValueError(f"{where}: {column} is {value!r}; expected {TIME}")
    return time
