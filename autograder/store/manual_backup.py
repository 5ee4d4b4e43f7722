"""Reads manual grades from a gradebook, and restores them into one.

Everything else in a gradebook can be rebuilt from the journal. So manual grades are copied whenever
the gradebook is written, and the readable ones are salvaged from a damaged gradebook.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import select, update

from autograder.model.submission import SubmissionKey
from autograder.notebooks.binder import full_name
from autograder.store import tables as api
from autograder.store.gradebook_file import has_tables, open_session
from autograder.store.out_folder import OutFolder
from autograder.store.scores import COMMENTED, GRADED_BY_HAND, rows_of

__all__ = [
    "Manual",
    "from_json",
    "is_manual",
    "manual_in",
    "merged",
    "restore",
    "salvaged",
    "submissions_in",
    "to_json",
]


@dataclass(frozen=True)
class Manual:
    """The manual grades of one submission, by the cell names that `bind` gives."""

    #: Points that replace the automatic score.
    points: Mapping[str, float] = field(default_factory=dict)
    #: Extra credit.
    extra: Mapping[str, float] = field(default_factory=dict)
    #: Comments.
    comments: Mapping[str, str] = field(default_factory=dict)
    #: The cells whose points are flagged for a second look.
    again: Sequence[str] = field(default_factory=list)

    def values(self, cell: str) -> dict[str, Any]:
        """Return the column values for a cell's row in the gradebook."""
        values: dict[str, Any] = {"extra_credit": self.extra.get(cell)}
        if cell in self.points:
            values |= {"manual_score": self.points[cell], "needs_manual_grade": cell in self.again}
        return values

    def without(self, graded: Collection[str], commented: Collection[str]) -> Manual:
        """Return the same grades without the points of `graded` and the comments of `commented`."""
        return Manual(
            points={cell: value for cell, value in self.points.items() if cell not in graded},
            extra={cell: value for cell, value in self.extra.items() if cell not in graded},
            comments={cell: text for cell, text in self.comments.items() if cell not in commented},
            again=[cell for cell in self.again if cell not in graded],
        )


def manual_in(out: OutFolder) -> dict[SubmissionKey, Manual]:
    """Return the manual grades in `out`/gradebook.db; submissions without any are left out."""
    if not has_tables(out):
        return {}
    grade, comment = api.Grade, api.Comment
    found: dict[SubmissionKey, _Found] = defaultdict(_Found)
    with open_session(out) as session:
        columns = (grade.manual_score, grade.extra_credit, grade.needs_manual_grade)
        for key, cell, *values in rows_of(session, grade, *columns, where=GRADED_BY_HAND):
            found[key].add_grade(cell, *values)
        said = comment.manual_comment
        for key, cell, text in rows_of(session, comment, said, where=COMMENTED):
            found[key].comments[cell] = text
    return {key: one.manual() for key, one in found.items()}


def submissions_in(out: OutFolder) -> set[SubmissionKey]:
    """Return all submissions in `out`/gradebook.db."""
    if not has_tables(out):
        return set()
    submission = api.SubmittedAssignment
    query = select(submission.student_id, api.Assignment.name).join(
        api.Assignment, api.Assignment.id == submission.assignment_id
    )
    with open_session(out) as session:
        return {SubmissionKey(student, lab) for student, lab in session.execute(query)}


def restore(out: OutFolder, manual: Mapping[SubmissionKey, Manual]) -> dict[SubmissionKey, Manual]:
    """Restore manual grades that `out`/gradebook.db lacks; return those for which it has no row.

    The latter belong to submissions that currently have no automatic grade.
    """
    if not manual:
        return {}
    grade, comment = api.Grade, api.Comment
    homeless = {}
    with open_session(out) as session:
        grades = _by_cell(rows_of(session, grade, grade.id, grade.manual_score))
        comments = _by_cell(rows_of(session, comment, comment.id, comment.manual_comment))
        for key, given in manual.items():
            missing = given.without(
                {
                    cell
                    for cell in given.points.keys() | given.extra.keys()
                    if (key, cell) in grades
                },
                {cell for cell in given.comments if (key, cell) in comments},
            )
            if missing != Manual():
                homeless[key] = missing
            for cell in given.points.keys() | given.extra.keys():
                row, held = grades.get((key, cell), (None, None))
                if row is not None and held is None:
                    values = given.values(cell)
                    session.execute(update(grade).where(grade.id == row).values(**values))
            for cell, text in given.comments.items():
                row, said = comments.get((key, cell), (None, None))
                if row is not None and not said:
                    values = {"manual_comment": text}
                    session.execute(update(comment).where(comment.id == row).values(**values))
    return homeless


def _by_cell(rows: Iterator[Any]) -> dict[tuple[SubmissionKey, str], tuple[Any, Any]]:
    return {(key, cell): (row, held) for key, cell, row, held in rows}


def merged(
    kept: Mapping[SubmissionKey, Manual], found: Mapping[SubmissionKey, Manual]
) -> tuple[dict[SubmissionKey, Manual], list[str]]:
    """Return the manual grades of a copy, updated with those found in a damaged gradebook.

    Damage may have changed a number, so points that differ from the copy's are flagged for a second
    look; the returned sentences name them.
    """
    whole, doubts = dict(kept), []
    for key, new in found.items():
        old = whole.get(key, Manual())
        other = [cell for cell, value in new.points.items() if old.points.get(cell) != value]
        doubts += [
            f"{key}: the damaged gradebook has {new.points[cell]:g} points for {cell}, but its "
            f"last copy has {_told(old.points.get(cell))}; check it in Formgrader"
            for cell in other
        ]
        whole[key] = Manual(
            points={**old.points, **new.points},
            extra={**old.extra, **new.extra},
            comments={**old.comments, **new.comments},
            again=sorted({*old.again, *new.again, *other}),
        )
    return whole, doubts


def to_json(manual: Mapping[SubmissionKey, Manual]) -> dict[str, dict[str, Any]]:
    """Return manual grades as JSON-ready data, by lab and student."""
    data: dict[str, dict[str, Any]] = {}
    for (student, lab), given in sorted(manual.items()):
        data.setdefault(lab, {})[student] = asdict(given)
    return data


def from_json(data: Mapping[str, Mapping[str, Any]]) -> dict[SubmissionKey, Manual]:
    """Return the manual grades that `to_json` wrote."""
    return {
        SubmissionKey(s, lab): Manual(**given)
        for lab, some in data.items()
        for s, given in some.items()
    }


def is_manual(data: object) -> bool:
    """Tell whether the data have the form that `to_json` returns."""
    if not isinstance(data, dict) or not all(isinstance(some, dict) for some in data.values()):
        return False
    for given in (given for some in data.values() for given in some.values()):
        if not isinstance(given, dict) or given.keys() != asdict(Manual()).keys():
            return False
        numbers = (given["points"], given["extra"])
        if not all(isinstance(of, dict) and all(map(_is_number, of.values())) for of in numbers):
            return False
        texts = given["comments"]
        if not isinstance(texts, dict) or not all(isinstance(t, str) for t in texts.values()):
            return False
        if not isinstance(given["again"], list):
            return False
    return True


def salvaged(out: OutFolder) -> dict[SubmissionKey, Manual]:
    """Return the manual grades that can still be read from a damaged gradebook, row by row."""
    path = out.gradebook
    if not path.is_file():
        return {}
    with TemporaryDirectory(prefix="autograder-salvage-") as folder:
        copy = Path(folder, path.name)
        copy.write_bytes(_in_full_length(path.read_bytes()))
        try:
            with closing(sqlite3.connect(copy)) as book:
                book.text_factory = lambda raw: raw.decode(errors="replace")
                return _salvaged(book)
        except sqlite3.Error:
            return {}


def _in_full_length(data: bytes) -> bytes:
    """The file padded with zeros to its full length, because SQLite can't read a shortened file."""
    size, pages = int.from_bytes(data[16:18]), int.from_bytes(data[28:32])
    return data.ljust(min(size * pages, 2 * len(data)), b"\0")


def _salvaged(book: sqlite3.Connection) -> dict[SubmissionKey, Manual]:
    labs = dict(_rows(book, "SELECT id, name FROM assignment"))
    notebooks = {
        i: rest for i, *rest in _rows(book, "SELECT id, name, assignment_id FROM notebook")
    }
    work = dict(_rows(book, "SELECT id, student_id FROM submitted_assignment"))
    cells = dict(_rows(book, "SELECT id, name FROM base_cell"))
    places: dict[str, tuple[SubmissionKey, str, bool]] = {}
    for place, submission, notebook in _rows(
        book, "SELECT id, assignment_id, notebook_id FROM submitted_notebook"
    ):
        name, lab_id = notebooks.get(notebook, ("", ""))
        alone = sum(lab == lab_id for _, lab in notebooks.values()) == 1
        if submission in work and lab_id in labs:
            places[place] = SubmissionKey(work[submission], labs[lab_id]), name, alone
    found: dict[SubmissionKey, _Found] = defaultdict(_Found)
    query = (
        "SELECT notebook_id, cell_id, manual_score, extra_credit, needs_manual_grade FROM grade "
        "WHERE manual_score IS NOT NULL OR coalesce(extra_credit, 0) != 0"
    )
    for place, cell, points, extra, again in _rows(book, query):
        whole = all(value is None or _is_number(value) for value in (points, extra))
        if place in places and cell in cells and whole:
            key, name, alone = places[place]
            found[key].add_grade(full_name(name, cells[cell], alone=alone), points, extra, again)
    query = (
        "SELECT notebook_id, cell_id, manual_comment FROM comment "
        "WHERE coalesce(manual_comment, '') != ''"
    )
    for place, cell, text in _rows(book, query):
        if place in places and cell in cells:
            key, name, alone = places[place]
            found[key].comments[full_name(name, cells[cell], alone=alone)] = str(text)
    return {key: one.manual() for key, one in found.items()}


def _rows(book: sqlite3.Connection, query: str) -> list[Any]:
    """All readable rows: from the front up to the damage, and from the end back to it."""
    rows: dict[Any, None] = {}
    for order in ("ASC", "DESC"):
        with suppress(sqlite3.Error):
            rows |= dict.fromkeys(_while_readable(book, f"{query} ORDER BY rowid {order}"))
    return list(rows)


def _while_readable(book: sqlite3.Connection, query: str) -> Iterator[Any]:
    with suppress(sqlite3.Error):
        yield from book.execute(query)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _told(points: float | None) -> str:
    return "none" if points is None else f"{points:g}"


@dataclass
class _Found:
    """The manual grades of one submission found so far."""

    points: dict[str, float] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    again: list[str] = field(default_factory=list)

    def add_grade(self, cell: str, points: float | None, extra: float | None, again: bool) -> None:
        if points is not None:
            self.points[cell] = points
            if again:
                self.again.append(cell)
        if extra:
            self.extra[cell] = extra

    def manual(self) -> Manual:
        return Manual(self.points, self.extra, self.comments, again=sorted(self.again))
