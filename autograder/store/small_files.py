"""Reads and writes the small JSON files of a results folder."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.base.damage import is_there, read_json
from autograder.base.files import write_whole
from autograder.store.out_folder import OutFolder, SmallName

__all__ = ["COUNTED", "SHOWN", "SMALL_FILES", "TAKEN", "WAIVED", "SmallFile"]


@dataclass(frozen=True)
class SmallFile:
    """One JSON file of a results folder."""

    #: Its name in the folder, without .json.
    name: SmallName
    #: A description of its contents, for the error message if it is damaged.
    expected: str
    #: Tells whether the data have its form.
    is_valid: Callable[[Any], bool]
    #: The data to assume if the file doesn't exist.
    empty: Any

    def path(self, out: OutFolder) -> Path:
        return out.small_file(self.name)

    def read(self, out: OutFolder) -> Any:
        """Return the data of `out`'s file. Raises Damaged if it can't be read."""
        path = self.path(out)
        return read_json(path, self.is_valid, self.expected) if is_there(path) else self.empty

    def write(self, out: OutFolder, data: Any) -> None:
        write_whole(self.path(out), json.dumps(data, sort_keys=True, indent=0).encode())


def _is_taken(data: object) -> bool:
    return isinstance(data, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(map(_is_name, pair)) for pair in data
    )


def _is_waived(data: object) -> bool:
    return _is_table(data, lambda reason: isinstance(reason, str))


def _is_shown(data: object) -> bool:
    return _is_table(data, lambda of_lab: _is_table(of_lab, lambda d: isinstance(d, str)))


def _is_counted(data: object) -> bool:
    return _is_table(data, lambda of_lab: _is_table(of_lab, _is_chosen))


def _is_chosen(data: object) -> bool:
    expected = {"folder", "received", "percent_off"}
    if not isinstance(data, dict) or data.keys() - {"days_late"} != expected:
        return False
    days = data.get("days_late", 0)  # older folders don't have it
    if type(days) is not int or days < 0:
        return False
    off, texts = data["percent_off"], (data["folder"], data["received"])
    is_percent = isinstance(off, int | float) and math.isfinite(off) and 0 <= off <= 100
    return is_percent and all(isinstance(text, str) for text in texts)


def _is_table(data: object, is_value: Callable[[object], bool]) -> bool:
    return isinstance(data, dict) and all(map(is_value, data.values()))


def _is_name(data: object) -> bool:
    return isinstance(data, str) and data not in {"", ".", ".."} and not set(data) & set("/\\\0")


TAKEN = SmallFile("taken", "a list of [student, lab], who submitted", _is_taken, [])
WAIVED = SmallFile("waived", "the reasons of waivers, by task", _is_waived, {})
COUNTED = SmallFile("counted", "the attempt that counts, by lab and student", _is_counted, {})
SHOWN = SmallFile("shown", "a digest of each submission that Formgrader has shown", _is_shown, {})
SMALL_FILES = (TAKEN, WAIVED, COUNTED, SHOWN)
