"""Grades a class again after a lab has changed, and compares the new grades with the old.

`OUT/regrade` holds the new results. They replace the old ones only after approval.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autograder.base.files import write_whole
from autograder.model.result import Result
from autograder.notebooks.questions import source_notebooks
from autograder.publish.publishing import publish
from autograder.review.changes import Change, between, note_down
from autograder.rules.waivers import waive, waivers
from autograder.runs.room import Classroom
from autograder.store.cells import save_cells
from autograder.store.journal import Journal
from autograder.store.roll import counted, note_counted, note_taken, taken

__all__ = ["Comparison", "beside", "commit", "compare"]


@dataclass(frozen=True)
class Comparison:
    """The differences between new grades and old."""

    #: The scores that change.
    changes: Sequence[Change]
    #: The students without a grade before.
    new: Sequence[str]


def beside(room: Classroom) -> Classroom:
    """Return the settings for grading again, separately from the existing grades."""
    return replace(room, out=room.out.regrade, keeps_old=False)


def compare(room: Classroom) -> Comparison:
    """Compare the new grades with the existing ones."""
    ours, theirs, given = Journal(room.out), Journal(beside(room).out), waivers(room.out)
    changes: list[Change] = []
    new = []
    for key in taken(beside(room).out):
        old, result = ours.verdicts(key), theirs.verdicts(key)
        if old is None:
            new.append(key.student)
        elif result is not None and key.lab == room.lab:
            changes += between(waive(old, given), waive(result, given))
    return Comparison(changes, new)


def commit(room: Classroom, comparison: Comparison) -> list[Result]:
    """Replace the existing grades with the new ones, publish them, and return all results.

    Raises ValueError, before anything is written, if the gradebook has other cells.
    """
    there = beside(room).out
    if room.out.gradebook.is_file():
        save_cells(room.out, room.lab, source_notebooks(room.lab, room.course))
    note_down(comparison.changes, room.out)
    for key in taken(there):
        if key.lab == room.lab and Journal(there).verdicts(key) is not None:
            room.out.drop_pages(key)
    pairs = [(there, room.out)]
    pairs += [(theirs, room.out.attempt(theirs.path.name)) for theirs in there.attempts()]
    for theirs, ours in pairs:
        for key, entry in theirs.entries().items():
            if key.lab == room.lab:
                write_whole(ours.entry(key), entry.read_bytes())
    for theirs, ours in pairs:
        note_taken(ours, room.lab, {key.student for key in taken(theirs)})
    if chosen := counted(there):
        note_counted(room.out, chosen)
    results = publish(room.out, room.course)
    shutil.rmtree(there.path)
    return results
