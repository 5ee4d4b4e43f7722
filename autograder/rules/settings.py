"""Reads settings from a file by name; errors name the file, the key and what was expected."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from autograder.base.course import Course
from autograder.base.spelling import begun_by
from autograder.grading.registry import find_task, lab_names
from autograder.model.scoring import SANE, STOCK, Rules

Choice = TypeVar("Choice", bound=str)

__all__ = ["TIME", "Settings", "read_time"]

_RULES = {"sane": SANE, "stock": STOCK}
TIME = "a date and time with its offset from UTC, such as 2026-11-20T23:59:00+01:00"


@dataclass(frozen=True)
class Settings:
    """The settings in one file, and the checks on their values."""

    #: The file, for error messages.
    path: Path
    #: The course whose labs and tasks it may name; None to allow any name.
    course: Course | None

    @cached_property
    def labs(self) -> list[str] | None:
        """The names that a lab may have; None if any name is allowed."""
        return None if self.course is None else lab_names(self.course)

    def lab(self, word: str) -> str | None:
        """The full name of a lab, which may be given by its beginning; None if there is none."""
        if self.labs is None or word in self.labs:
            return word
        begun = begun_by(word, self.labs)
        return begun[0] if len(begun) == 1 else None

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

    def one_of(self, data: Mapping[str, Any], key: str, choices: tuple[Choice, ...]) -> Choice:
        """The value of a key; without it, the first choice."""
        value = data.get(key, choices[0])
        if value not in choices:
            raise self.wrong(key, value, f"one of {', '.join(choices)}")
        return choices[choices.index(value)]

    def number(self, late: Mapping[str, Any], key: str, default: float, most: float) -> float:
        value = late.get(key, default)
        if type(value) not in (int, float) or not 0 <= value <= most:
            raise self.wrong(f"late.{key}", value, f"a number from 0 to {most:g}")
        return float(value)

    def times(self, table: Mapping[str, object]) -> dict[str, datetime]:
        """The due times by lab."""
        times: dict[str, datetime] = {}
        for word, value in table.items():
            lab = self.lab(word)
            if lab is None:
                expected = f"a lab among {', '.join(self.labs or ())}"
                raise self.wrong(f"due.{word}", str(value), expected)
            if lab in times:
                raise self.wrong(f"due.{word}", str(value), f"one due time for {lab}")
            time = read_time(value) if isinstance(value, str) else value
            if not isinstance(time, datetime) or time.tzinfo is None:
                raise self.wrong(f"due.{word}", str(value), TIME)
            times[lab] = time
        return times

    def file(self, data: Mapping[str, Any], key: str) -> Path | None:
        name = data.get(key)
        if name is None:
            return None
        if not isinstance(name, str):
            raise self.wrong(key, name, "the path of a CSV file, as text")
        path = self.path.parent / name
        if not path.is_file():
            raise FileNotFoundError(
                f"{self.path}: {key} is {name!r}, but there is no file {path}. Write or restore "
                "the file, or remove the key."
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
        """Yield each task of the table `key`, with its reason, which students read."""
        for task, reason in self.table(data, key).items():
            try:
                if self.course is not None:
                    find_task(task, self.course, rules)
            except ValueError as error:
                raise self.wrong(f"{key}.{task}", reason, f"a task's id: {error}") from error
            if not isinstance(reason, str) or not reason.strip():
                raise self.wrong(f"{key}.{task}", reason, "the reason, which students read")
            yield task, reason.strip()


def read_time(text: str) -> datetime | None:
    """Return a date and time from ISO 8601 text; None for any other text."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
