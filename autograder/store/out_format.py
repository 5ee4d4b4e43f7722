"""Versions the format of a results folder: writes the version, and checks it before reading."""

from __future__ import annotations

import json
from typing import Any

from autograder.base.damage import is_there, read_json
from autograder.base.files import write_whole
from autograder.store.out_folder import OutFolder

__all__ = ["FORMAT", "format_of", "require_known_format", "write_format"]

#: The format that this grader writes. docs/out_folder.md lists each version's changes.
FORMAT = 2


def format_of(out: OutFolder) -> int:
    """Return the version of a folder's format; 0 if it records none, as the first folders did.

    Raises Damaged if the record can't be read.
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
            f"{out} has format {there}, but this grader knows formats up to {FORMAT}; use the "
            "grader that wrote it, or give another OUT"
        )


def write_format(out: OutFolder) -> None:
    """Record that a folder has the current format."""
    write_whole(out.format, json.dumps({"format": FORMAT}).encode() + b"\n")


def _is_format(data: Any) -> bool:
    return isinstance(data, dict) and type(data.get("format")) is int and data["format"] > 0
