"""Checks that a results folder is fit to go on from, before a command does."""

from __future__ import annotations

from pathlib import Path

from autograder.base.damage import Damaged, is_there
from autograder.store.gradebook_file import require_gradebook
from autograder.store.published import published
from autograder.store.roll import attempt_folders
from autograder.store.small_files import SETTINGS, SMALL_FILES, TAKEN

__all__ = ["require_whole"]


def require_whole(out: Path) -> None:
    """Raise Damaged for the first file in `out` that is missing, cut off or replaced.

    A results folder that nothing was graded into is whole, and so is one that is not there. Raises
    ValueError if the instructor's own rules are gone.
    """
    for folder in (out, *attempt_folders(out)):
        for small in SMALL_FILES:
            small.read(folder)
        if not is_there(TAKEN.path(folder)) and any(folder.glob("journal/*/*.entry")):
            raise Damaged(TAKEN.path(folder), "is missing", TAKEN.expected)
    record = published(out)
    for small in SMALL_FILES:
        if record.copy(small) and not is_there(small.path(out)):
            raise Damaged(small.path(out), "is missing", small.expected)
    if record.settings and not is_there(out / SETTINGS):
        raise ValueError(
            f"{out / SETTINGS} is missing, and the grades here rest on its rules; put it back from "
            "a copy, or put an empty file in its place if no rules are to hold any more"
        )
    require_gradebook(out)
