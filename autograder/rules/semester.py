"""The rules of a course that an instructor writes down, in one file `OUT/semester.toml`.

It names the roster, when work was received, when it was due and for whom later, what being late
costs, which attempt counts, which tasks everybody is given, and how ordinary assignments are
scored. Without the file none of that applies. Every error names the file, the key, the value, and
what was expected.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from autograder.base.course import COURSE, Course
from autograder.base.damage import is_there
from autograder.grading.registry import find_task, lab_names
from autograder.model.scoring import SANE, STOCK, Rules
from autograder.model.submission import SubmissionKey
from autograder.notebooks.intake import is_student_id
from autograder.rules.csv_input import rows
from autograder.store.out_folder import OutFolder

__all__ = ["Late", "Receipt", "Semester", "Stretch", "Student", "read_semester"]


Attempts = Literal["last", "best", "on_time"]
_ATTEMPTS: tuple[Attempts, ...] = ("last", "best", "on_time")
Stretch = Literal["required", "bonus", "left_out"]
_STRETCH: tuple[Stretch, ...] = ("required", "bonus", "left_out")
_KEYS = (
    *("attempts", "due", "extensions", "late", "left_out", "ordinary", "receipts", "roster"),
    *("stretch", "waived"),
)
_RULES = {"sane": SANE, "stock": STOCK}
_LATE = ("grace_minutes", "most_percent", "percent_per_day")
_TIME = "a date and time with its offset from UTC, such as 2026-11-20T23:59:00+01:00"


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
    settings = _Settings(path, course)
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


@dataclass(frozen=True)
class _Settings:
    """The file `path`, whose values are taken out by name; `course` is whose labs it may name."""

    path: Path
    course: Course | None

    @cached_property
    def labs(self) -> list[str] | None:
        """The names that a lab may have; None for any."""
        return None if self.course is None else lab_names(self.course)

    def wrong(self, key: str, value: object, expected: str) -> ValueError:
        there = "is missing" if value is None else f"is {value!r}"
        return ValueError(f"{self.path}: {key} {there}; expected {expected}")

    def known(self, table: Mapping[str, Any], keys: Collection[str], prefix: str = "") -> None:
        for key, value in table.items():
            if key not in keys:
                raise self.wrong(prefix + key, value, f"a key among {', '.join(keys)}")

    def table(self, data: Mapping[str, Any], key: str) -> dict[str, Any]:
        table = data.get(key, {})
        if not isinstance(table, dict):
            raise self.wrong(key, table, f"a table, [{key}]")
        return table

    def number(self, late: Mapping[str, Any], key: str, default: float, most: float) -> float:
        value = late.get(key, default)
        if type(value) not in (int, float) or not 0 <= value <= most:
            raise self.wrong(f"late.{key}", value, f"a number from 0 to {most:g}")
        return float(value)

    def time(self, lab: str, value: object) -> datetime:
        if self.labs is not None and lab not in self.labs:
            raise self.wrong(f"due.{lab}", str(value), f"a lab among {', '.join(self.labs)}")
        time = _read_time(value) if isinstance(value, str) else value
        if not isinstance(time, datetime) or time.tzinfo is None:
            raise self.wrong(f"due.{lab}", str(value), _TIME)
        return time

    def file(self, data: Mapping[str, Any], key: str) -> Path | None:
        name = data.get(key)
        if name is None:
            return None
        if not isinstance(name, str):
            raise self.wrong(key, name, "the path of a CSV file, as text")
        path = self.path.parent / name
        if not path.is_file():
            raise FileNotFoundError(
                f"{self.path}: {key} is {name!r}; there is no file {path}. Put it back, or take "
                "the key out."
            )
        return path

    def rules(self, table: Mapping[str, Any]) -> Rules:
        start = table.get("rules", "sane")
        if start not in _RULES:
            raise self.wrong("ordinary.rules", start, f"one of {', '.join(_RULES)}")
        switches = {key: value for key, value in table.items() if key != "rules"}
        self.known(switches, ("rules", *asdict(SANE)), "ordinary.")
        for key, value in switches.items():
            if not isinstance(value, bool):
                raise self.wrong(f"ordinary.{key}", value, "true or false")
        return replace(_RULES[start], **switches)

    def reasons(self, data: Mapping[str, Any], key: str, rules: Rules) -> Iterator[tuple[str, str]]:
        """Yield each task of the table `key`, with the reason that students read."""
        for task, reason in self.table(data, key).items():
            try:
                if self.course is not None:
                    find_task(task, self.course, rules)
            except ValueError as error:
                raise self.wrong(f"{key}.{task}", reason, f"a task's id: {error}") from error
            if not isinstance(reason, str) or not reason.strip():
                raise self.wrong(f"{key}.{task}", reason, "the reason, which students read")
            yield task, reason.strip()


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
    time = _read_time(value)
    if time is None or time.tzinfo is None:
        raise ValueError(f"{where}: {column} is {value!r}; expected {_TIME}")
    return time


def _read_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
