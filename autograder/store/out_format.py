"""The version of a results folder's format: written into it, and checked before it is read."""

from __future__ import annotations

import json
from typing import Any

from autograder.base.damage import is_there, read_json
from autograder.base.files import write_whole
from autograder.store.out_folder import OutFolder

__all__ = ["FORMAT", "format_of", "require_known_format", "write_format"]

#: The format that this grader writes. docs/out_folder.md says what each has changed.
FORMAT = 1


def format_of(out: OutFolder) -> int:
    """Return the version of a folder's format: 0 if it has none, as folders had at first.

    Raises Damaged for a file that cannot be read.
    """
    if not is_there(out.format):
        return 0
    data = read_json(out.format, _is_format, "the version of the folder's format")
    return int(data["format"])


def require_known_format(out: OutFolder) -> None:
    """Raise ValueError if a newer grader wrote the folder, Damaged if its version is unreadable."""
    there = format_of(out)
    if there > FORMAT:
        raise ValueError(
            f"{out} has format {there}, and this grader knows formats up to {FORMAT}; use the "
            "grader that wrote it, or give another OUT"
        )


def write_format(out: OutFolder) -> None:
    """Write down that a folder is of the present format."""
    write_whole(out.format, json.dumps({"format": FORMAT}).encode() + b"\n")


def _is_format(data: Any) -> bool:
    return isinstance(data, dict) and type(data.get("format")) is int and data["format"] > 0
