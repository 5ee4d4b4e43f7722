"""Reads the rules of a course that an instructor writes in one file, `OUT/semester.toml`.

It names the roster, receipt times, due times and extensions, the cost of lateness, the attempt that
counts, waived tasks, and how ordinary assignments are scored. Without the file none of these rules
apply. Every error names the file, the key, the value, and what was expected.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

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
    """A row of the roster. Only the id is always present."""

    #: The student's id, which names the submission's folder.
    id: str
    #: Given name.
    first_name: str = ""
    #: Family name.
    last_name: str = ""
    #: E-mail address.
    email: str = ""
    #: The user id in the learning platform.
    lms_user_id: str = ""


@dataclass(frozen=True)
class Receipt:
    """When a submission was received, by a clock that the student can't set."""

    #: The student's id.
    student: str
    #: The lab's name.
    lab: str
    #: When the submission was received.
    received: datetime
    #: This attempt's folder, within the submissions' folder; empty for that folder itself.
    folder: str = ""


@dataclass(frozen=True)
class Late:
    """The cost of lateness."""

    #: Time after the due time in which nothing counts as late. Beyond it, days count from the due
    #: time itself.
    grace: timedelta = timedelta(0)
    #: Percentage of the points taken off for each day begun.
    percent_per_day: float = 0.0
    #: The maximum percentage taken off.
    most_percent: float = 100.0


@dataclass(frozen=True)
class Semester:
    """A course's rules."""

    #: Which attempt counts.
    attempts: Attempts = "last"
    #: Due times by lab.
    due: Mapping[str, datetime] = field(default_factory=dict)
    #: The cost of lateness.
    late: Late = field(default_factory=Late)
    #: Later due times, by student and lab.
    extensions: Mapping[SubmissionKey, datetime] = field(default_factory=dict)
    #: When each attempt was received.
    receipts: tuple[Receipt, ...] = ()
    #: The course's students.
    roster: tuple[Student, ...] = ()
    #: The reasons why everyone gets a task's points, by task.
    waived: Mapping[str, str] = field(default_factory=dict)
    #: How exercises beyond the labs' cores count.
    stretch: Stretch = "required"
    #: The reasons why tasks don't count, by task.
    left_out: Mapping[str, str] = field(default_factory=dict)
    #: How ordinary assignments are scored.
    ordinary: Rules = SANE

    def folders(self, lab: str) -> list[str]:
        """Return the folders of the lab's attempts; that of the submissions' folder is empty."""
        return sorted({receipt.folder for receipt in self.receipts if receipt.lab == lab})

    def due_for(self, student: str, lab: str) -> datetime | None:
        """Return when this student's work is due: the lab's due time, or a later one granted."""
        times = (self.due.get(lab), self.extensions.get(SubmissionKey(student, lab)))
        return max((time for time in times if time is not None), default=None)


def read_semester(
    out: OutFolder, course: Course | None = COURSE, *, receipts_may_come: bool = False
) -> Semester:
    """Return the rules in `out`/semester.toml; without the file, the defaults.

    Labs and tasks must be those of the course; without a course their names aren't checked. With
    `receipts_may_come`, the file of receipts that `collect` writes needn't exist yet.

    Raises ValueError if a key, a value or a row isn't as expected, and FileNotFoundError if a file
    that the settings name doesn't exist.
    """
    path = out.semester
    if not is_there(path):
        return Semester()
    data = _table_in(path)
    settings = Settings(path, course)
    ordinary = settings.rules(settings.table(data, "ordinary"))
    settings.known(data, _KEYS)
    late = settings.table(data, "late")
    settings.known(late, _LATE, "late.")
    attempts = settings.one_of(data, "attempts", _ATTEMPTS)
    stretch = settings.one_of(data, "stretch", _STRETCH)
    due = settings.times(settings.table(data, "due"))
    if late and not due:
        raise settings.wrong("due", due, "a due time for each lab, since [late] is set")
    if due and "receipts" not in data:
        expected = (
            f'`receipts = "{out.receipts.name}"`, a file of receipt times, since [due] is set'
        )
        raise settings.wrong("receipts", None, expected)
    if (
        receipts_may_come
        and data.get("receipts") == out.receipts.name
        and not is_there(out.receipts)
    ):
        del data["receipts"]
    return Semester(
        attempts=attempts,
        due=due,
        late=Late(
            timedelta(minutes=settings.number(late, "grace_minutes", 0.0, 7 * 24 * 60)),
            settings.number(late, "percent_per_day", 0.0, 100),
            settings.number(late, "most_percent", 100.0, 100),
        ),
        extensions=_extensions(settings.file(data, "extensions"), settings, due),
        receipts=tuple(_receipts(settings.file(data, "receipts"), settings)),
        roster=tuple(_roster(settings.file(data, "roster"))),
        waived=dict(settings.reasons(data, "waived", ordinary)),
        stretch=stretch,
        left_out=dict(settings.reasons(data, "left_out", ordinary)),
        ordinary=ordinary,
    )


def _table_in(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file. Raises ValueError if it can't be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ValueError(
            f"{path} can't be read ({error.strerror}); expected a text file with your rules. "
            "Restore it from a backup, or remove it if no rules apply."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is not a TOML file ({error}); correct it, or restore it from a backup"
        ) from error


def _roster(path: Path | None) -> Iterator[Student]:
    names = ("first_name", "last_name", "email", "lms_user_id")
    if path is None:
        return
    for where, row in rows(path, ("id",), names, key=("id",)):
        _check_student(where, "id", row["id"])
        yield Student(**row)


def _receipts(path: Path | None, settings: Settings) -> Iterator[Receipt]:
    if path is None:
        return
    for where, row in rows(
        path, ("student", "lab", "received"), ("folder",), key=("student", "lab", "folder")
    ):
        _check_student(where, "student", row["student"])
        lab = _lab(where, row["lab"], settings)
        if row["folder"] and not is_student_id(row["folder"]):
            raise ValueError(
                f"{where}: folder is {row['folder']!r}; expected the name of a folder in the "
                "submissions' folder: letters, digits, spaces and . _ - @"
            )
        received = _time(where, "received", row["received"])
        yield Receipt(row["student"], lab, received, row["folder"])


def _extensions(
    path: Path | None, settings: Settings, due: Mapping[str, datetime]
) -> dict[SubmissionKey, datetime]:
    granted: dict[SubmissionKey, datetime] = {}
    if path is None:
        return granted
    for where, row in rows(path, ("student", "lab", "due"), (), key=("student", "lab")):
        student, lab = row["student"], _lab(where, row["lab"], settings)
        _check_student(where, "student", student)
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


def _lab(where: str, value: str, settings: Settings) -> str:
    lab = settings.lab(value)
    if lab is None:
        expected = ", ".join(settings.labs or ())
        raise ValueError(f"{where}: lab is {value!r}; expected one of {expected}")
    return lab


def _time(where: str, column: str, value: str) -> datetime:
    time = read_time(value)
    if time is None or time.tzinfo is None:
        raise ValueError(f"{where}: {column} is {value!r}; expected {TIME}")
    return time
