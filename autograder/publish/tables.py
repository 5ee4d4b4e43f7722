"""Exports for other systems: one row per student, Canvas's gradebook, all feedback in a zip."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.base.csv_table import csv_bytes
from autograder.base.files import draft_of, write_whole
from autograder.model.submission import SubmissionKey
from autograder.publish.final_grades import Standing
from autograder.publish.grades_csv import points
from autograder.rules.semester import Student

__all__ = ["Cells", "write_canvas", "write_feedback_zip", "write_students"]

_CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_POSSIBLE = "    Points Possible"  # Canvas recognises the row by exactly these spaces
_BEGINNING = (1980, 1, 1, 0, 0, 0)  # the time of all files in a zip, for reproducible bytes

Standings = Mapping[SubmissionKey, Standing]


def write_students(standings: Standings, people: Mapping[str, Student], path: Path) -> None:
    """Write one row per student, with each lab's columns side by side.

    `core` and `stretch` are the parts of `points`; `final` is `points` after the deduction for
    lateness; `waiting` counts the questions that wait for manual grading, which count as 0 until
    then; `release` is the one that the submission names.
    """
    labs = sorted({key.lab for key in standings})
    kinds = ("points", "of", "core", "stretch", "percent_off", "final", "waiting", "release")
    header = ["student", "last_name", "first_name", "email"]
    rows = [header + [f"{lab} {kind}" for lab in labs for kind in kinds]]
    for name, person in people.items():
        row = [name, person.last_name, person.first_name, person.email]
        for lab in labs:
            row += _columns(standings.get(SubmissionKey(name, lab)))
        rows.append(row)
    write_whole(path, csv_bytes(rows))


@dataclass
class Cells:
    """The cells in a lab's column of Canvas's table that aren't final."""

    #: Empty cells.
    empty: int = 0
    #: Cells with the points so far, for students whose work waits for manual grading.
    partial: int = 0


def write_canvas(
    standings: Standings, people: Mapping[str, Student], path: Path, *, partial: bool = False
) -> dict[str, Cells]:
    """Write a file for Canvas's gradebook to import; return by lab how many cells aren't final.

    A student whose work waits for manual grading gets an empty cell, which leaves Canvas's value
    unchanged; with `partial`, the cell has the points so far, if any. If exercises were left out
    for lack of a GPU, the rest is scaled to the lab's points.
    """
    labs = sorted({key.lab for key in standings})
    possible = {lab: max(s.of for key, s in standings.items() if key.lab == lab) for lab in labs}
    rows = [[*_CANVAS, *labs]]
    rows.append([_POSSIBLE, "", "", "", "", *(points(possible[lab]) for lab in labs)])
    counts = {lab: Cells() for lab in labs}
    for name, person in people.items():
        shown = ", ".join(part for part in (person.last_name, person.first_name) if part)
        row = [shown or name, person.lms_user_id, "", name, ""]
        for lab in labs:
            standing = standings.get(SubmissionKey(name, lab))
            if standing is None or not _is_told(standing, partial=partial):
                counts[lab].empty += 1
                row.append("")
            else:
                counts[lab].partial += bool(standing.waiting)
                row.append(_scaled(standing, possible[lab]))
        rows.append(row)
    write_whole(path, csv_bytes(rows, as_is=[_POSSIBLE]))
    return counts


def write_feedback_zip(pages: Iterable[Path], path: Path) -> int:
    """Write the `pages` that exist, as <student>/<lab>.html, into one zip; return how many."""
    files = sorted(page for page in pages if page.is_file())
    # Straight to disk, because a large class's zip takes a hundred megabytes.
    with draft_of(path) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            name = zipfile.ZipInfo(f"feedback/{file.parent.name}/{file.name}", _BEGINNING)
            archive.writestr(name, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return len(files)


def _columns(standing: Standing | None) -> list[str]:
    if standing is None:
        return [""] * 8
    earned = (standing.points, standing.of, standing.core, standing.stretch)
    values = (*earned, standing.late.percent_off, standing.final)
    return [*map(points, values), str(len(standing.waiting)), standing.release]


def _is_told(standing: Standing, *, partial: bool) -> bool:
    if standing.waiting:
        return partial and standing.scored > 0
    return standing.of > 0


def _scaled(standing: Standing, possible: float) -> str:
    return points(standing.final * possible / standing.of)
