"""Grades a class again beside its old grades, after a lab has changed, and compares.

`OUT/regrade` gets the new results. Only when they are agreed to do they take the old ones' place.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autograder.base.files import write_whole
from autograder.model.result import Result
from autograder.notebooks.questions import source_notebooks
from autograder.publish.pages import drop_pages
from autograder.publish.publishing import publish
from autograder.review.changes import Change, between, note_down
from autograder.rules.waivers import waive, waivers
from autograder.runs.classroom import Classroom
from autograder.store.database import save_cells
from autograder.store.journal import Journal
from autograder.store.roll import attempt_folders, counted, note_counted, note_taken, taken

__all__ = ["Comparison", "beside", "commit", "compare"]

_BESIDE = "regrade"


@dataclass(frozen=True)
class Comparison:
    """Changed scores, and the students who had no grade before."""

    changes: Sequence[Change]
    new: Sequence[str]


def beside(room: Classroom) -> Classroom:
    """Return the class to grade, so that the grades that there are stay as they are."""
    return replace(room, out=room.out / _BESIDE, keeps_old=False)


def compare(room: Classroom) -> Comparison:
    """Compare the grades beside with those that there are."""
    ours, theirs, given = Journal(room.out), Journal(beside(room).out), waivers(room.out)
    changes: list[Change] = []
    new = []
    for student, lab in taken(beside(room).out):
        old, result = ours.verdicts(lab, student), theirs.verdicts(lab, student)
        if old is None:
            new.append(student)
        elif result is not None and lab == room.lab:
            changes += between(waive(old, given), waive(result, given))
    return Comparison(changes, new)


def commit(room: Classroom, comparison: Comparison) -> list[Result]:
    """Let the grades beside take the old ones' place, publish them, and return all results.

    Raises ValueError, before anything is written, where the gradebook has other cells.
    """
    there = beside(room).out
    if (room.out / "gradebook.db").is_file():
        save_cells(room.out, room.lab, source_notebooks(room.lab, room.root))
    note_down(comparison.changes, room.out)
    students = {student for student, lab in taken(there) if lab == room.lab}
    for student in students:
        result = Journal(there).verdicts(room.lab, student)
        if result is not None:
            drop_pages(result, room.out)
    for path in there.rglob(f"journal/{room.lab}/*.entry"):
        write_whole(room.out / path.relative_to(there), path.read_bytes())
    for folder in (there, *attempt_folders(there)):
        own = replace(room, out=room.out / folder.relative_to(there))
        note_taken(own.out, own.lab, {student for student, _ in taken(folder)})
    if chosen := counted(there):
        note_counted(room.out, chosen)
    results = publish(room.out, room.root)
    shutil.rmtree(there)
    return results
