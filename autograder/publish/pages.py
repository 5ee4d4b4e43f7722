"""Writes everything people see of a submission, within the bounds of one process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from autograder.base import pool
from autograder.base.files import is_between
from autograder.base.terminal import say
from autograder.model.manual_grades import NOTHING, Given
from autograder.model.result import Result
from autograder.notebooks.questions import source_names
from autograder.publish.feedback import feedback_path, shows, write_feedback
from autograder.publish.formgrader import formgrader_pages, formgrader_path, write_for_formgrader
from autograder.rules.waivers import waive, waivers
from autograder.store.journal import Journal

__all__ = ["Shown", "are_there", "drop_pages", "write_missing", "write_pages"]


@dataclass(frozen=True)
class Shown:
    """A submission whose pages are to be written, and what people gave for it."""

    student: str
    lab: str
    given: Given = NOTHING


def write_pages(result: Result, out: Path, root: Path, given: Given = NOTHING) -> None:
    """Write the feedback page of a submission, and what formgrader shows of it, below `out`."""
    write_feedback(result, out, root, given)
    write_for_formgrader(result, out, root)


def write_missing(wanted: Sequence[Shown], out: Path, root: Path) -> None:
    """Write the pages of these submissions from the journal in `out`.

    Where what a student handed in takes too long to show, or too much memory, the pages show the
    points without it, and say why.
    """
    work: pool.Work[Shown, None] = pool.Work(partial(_writing, out, root), preload=(__name__,))
    for shown, outcome in pool.run_all(wanted, work, workers=1):
        result = Journal(out).verdicts(shown.lab, shown.student)
        if isinstance(outcome, pool.Failure) and result is not None:
            say(f"{shown.student}, {shown.lab}: {outcome.reason}", to=sys.stderr)
            note = f"Your cells are not shown here. {outcome.reason}"
            bare = replace(waive(result, waivers(out)), notes=(*result.notes, note))
            write_pages(bare, out, root, shown.given)


@contextmanager
def _writing(out: Path, root: Path, _slot: int) -> Iterator[Callable[[Shown], None]]:
    journal, waived = Journal(out), waivers(out)

    def write(shown: Shown) -> None:
        whole = journal.read(shown.lab, shown.student)
        if whole is not None:
            write_pages(waive(whole, waived), out, root, shown.given)

    yield write


def are_there(result: Result, out: Path, root: Path, given: Given) -> bool:
    """Tell whether a submission has all its pages, and they show what people gave."""
    page, names = feedback_path(result, out), source_names(result.lab, root)
    notebooks = (formgrader_path(result, out, name) for name in names)
    whole = (
        is_between(page, b"<!DOCTYPE html>", b"</html>\n"),
        *(is_between(notebook, b'{"cells": ', b"}\n") for notebook in notebooks),
    )
    return all(whole) and shows(page, given)


def drop_pages(result: Result, out: Path) -> None:
    """Remove the pages of a submission, so that `publish` writes them anew."""
    for path in (feedback_path(result, out), *formgrader_pages(result, out)):
        path.unlink(missing_ok=True)
