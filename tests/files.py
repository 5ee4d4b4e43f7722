"""Reads files that a test looks at."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path


def csv_records(path: Path) -> list[dict[str, str]]:
    """A CSV file's rows by the names in its header."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def csv_rows(path: Path) -> list[list[str]]:
    """A CSV file's rows, the header too."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def python_files(folder: Path) -> Iterator[Path]:
    """All modules below a folder, without what `pip install ./autograder` leaves in build/."""
    for path in sorted(folder.rglob("*.py")):
        if "build" not in path.relative_to(folder).parts:
            yield path


def files_in(folder: Path) -> dict[str, bytes]:
    """The contents of all files below a folder, by their relative path."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
