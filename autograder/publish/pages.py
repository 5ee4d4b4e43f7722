"""Writes all pages of a submission, within the bounds of one process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from autograder.base import pool
from autograder.base.course import Course
from autograder.base.files import is_between
from autograder.base.terminal import say
from autograder.model.lateness import ON_TIME, Lateness
from autograder.model.manual_grades import NO_MANUAL_GRADES, ManualGrades
from autograder.model.note import Note
from autograder.model.result import Result
from autograder.model.submission import SubmissionKey
from autograder.notebooks.questions import source_names
from autograder.publish.feedback import shows, write_feedback
from autograder.publish.formgrader import write_for_formgrader
from autograder.rules.counting import counting_of
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from autograder.store.whole_files import is_page

__all__ = ["Shown", "are_there", "write_missing", "write_pages"]


@dataclass(frozen=True)
class Shown:
    """A submission whose pages are to be written."""

    #: The submission.
    key: SubmissionKey
    #: Its manual points and comments.
    given: ManualGrades = NO_MANUAL_GRADES
    #: The deduction for lateness.
    late: Lateness = ON_TIME


def write_pages(
    result: Result,
    out: OutFolder,
    course: Course,
    given: ManualGrades = NO_MANUAL_GRADES,
    late: Lateness = ON_TIME,
) -> None:
    """Write below `out` a submission's feedback page and its notebooks for Formgrader."""
    write_feedback(result, out, course, given=given, late=late)
    write_for_formgrader(result, out, course)


def write_missing(wanted: Sequence[Shown], out: OutFolder, course: Course) -> None:
    """Write the pages of these submissions from the journal in `out`.

    If a student's work takes too much time or memory to show, the pages show the points without it
    and say why.
    """
    work: pool.Work[Shown, None] = pool.Work(partial(_writing, out, course), preload=(__name__,))
    for shown, outcome in pool.run_all(wanted, work, workers=1):
        result = Journal(out).verdicts(shown.key)
        if isinstance(outcome, pool.Failure) and result is not None:
            say(f"{shown.key}: {outcome.reason}", to=sys.stderr)
            note = Note("repair", f"Your cells aren't shown here. {outcome.reason}")
            bare = replace(counting_of(out, course).count(result), notes=(*result.notes, note))
            write_pages(bare, out, course, shown.given, shown.late)


@contextmanager
def _writing(out: OutFolder, course: Course, _slot: int) -> Iterator[Callable[[Shown], None]]:
    journal, counting = Journal(out), counting_of(out, course)

    def write(shown: Shown) -> None:
        whole = journal.read(shown.key)
        if whole is not None:
            write_pages(counting.count(whole), out, course, shown.given, shown.late)

    yield write


def are_there(result: Result, out: OutFolder, course: Course, given: ManualGrades) -> bool:
    """Tell whether a submission has all its pages, and they show the current manual grades."""
    page, names = out.feedback_page(result.key), source_names(result.lab, course)
    notebooks = (out.graded_notebook(result.key, name) for name in names)
    whole = (
        is_page(page),
        *(is_between(notebook, b'{"cells": ', b"}\n") for notebook in notebooks),
    )
    return all(whole) and shows(page, result, given)
