"""Checks that a results folder is complete before a command continues with it."""

from __future__ import annotations

from autograder.base.damage import Damaged, is_there
from autograder.store.out_folder import OutFolder
from autograder.store.out_format import require_known_format
from autograder.store.published import published
from autograder.store.small_files import SMALL_FILES, TAKEN

__all__ = ["require_whole"]


def require_whole(out: OutFolder) -> None:
    """Raise Damaged for the first file in `out` that is missing, cut off or replaced.

    A results folder without grades counts as complete, as does a missing folder. Raises ValueError
    if a newer grader wrote the folder, or if the instructor's own rules are gone.
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
            f"{out.semester} is missing, but the grades here depend on its rules; restore it from "
            "a backup, or create an empty file if no rules apply any longer"
        )
    if is_there(out.gradebook):
        from autograder.store.gradebook_file import require_gradebook  # slow to import

        require_gradebook(out)
