"""Reads grades.csv, as `grades_csv` or an older grader wrote it."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping

from autograder.base.damage import Damaged, is_there
from autograder.model.status import status_of
from autograder.model.submission import SubmissionKey
from autograder.publish.grades_csv import COLUMNS
from autograder.store.out_folder import OutFolder
from autograder.store.out_format import format_of

__all__ = ["Row", "read_grades"]

_READ = ("task", "status", "score", "max_score", "release", "kind")

Row = Mapping[str, str]


def read_grades(out: OutFolder) -> dict[SubmissionKey, list[Row]]:
    """Return the rows of `out`/grades.csv by submission, with statuses as ids; empty without it.

    A large class has many rows, so only the columns that the grader reads are in memory, and each
    text once. Raises Damaged if the file isn't such a table.
    """
    path = out.grades
    rows: dict[SubmissionKey, list[Row]] = {}
    if not is_there(path):
        return rows
    known: set[tuple[str, ...]] = {COLUMNS}
    if format_of(out) == 0:  # its table lacks kinds; publishing writes the table before the format
        known.add(tuple(name for name in COLUMNS if name != "kind"))
    try:
        with path.open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file)
            if tuple(table.fieldnames or ()) not in known:
                raise ValueError(f"its first row is {table.fieldnames}")
            for row in table:
                kept = {column: sys.intern(row.get(column) or "") for column in _READ}
                kept["status"] = status_of(kept["status"])
                names = (sys.intern(row.get(name) or "") for name in ("student", "lab"))
                rows.setdefault(SubmissionKey(*names), []).append(kept)
    except (ValueError, OSError, csv.Error) as error:
        raise Damaged(path, f"is damaged ({error})", "the table of all grades") from error
    return rows
