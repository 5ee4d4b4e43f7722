"""Checks that a results folder is fit to go on from, before a command does."""

from __future__ import annotations

from autograder.base.damage import Damaged, is_there
from autograder.store.gradebook_file import require_gradebook
from autograder.store.out_folder import OutFolder
from autograder.store.out_format import require_known_format
from autograder.store.published import published
from autograder.store.small_files import SMALL_FILES, TAKEN

__all__ = ["require_whole"]


def require_whole(out: OutFolder) -> None:
    """Raise Damaged for the first file in `out` that is missing, cut off or replaced.

    A results folder that nothing was graded into is whole, and so is one that is not there. Raises
    ValueError if a newer grader wrote the folder, or the instructor's own rules are gone.
    """
    require_known_format(out)
    for folder in (out, *out.attempts()):
        for small in SMALL_FILES:
            small.read(folder)
        if not is_there(TAKEN.path(folder)) and folder.entries():
            raise Damaged(TAKEN.path(folder), "is missing", TAKEN.expected)
    record = published(out)
    for small in SMALL_FILES:
        if record.copy(small) and not is_there(small.path(out)):
            raise Damaged(small.path(out), "is missing", small.expected)
    if record.settings and not is_there(out.semester):
        raise ValueError(
            f"{out.semester} is missing, and the grades here rest on its rules; put it back from "
            "a copy, or put an empty file in its place if no rules are to hold any more"
        )
    require_gradebook(out)
