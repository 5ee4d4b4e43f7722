"""Grades one lab's submissions of a whole class, from a folder of notebooks to a results folder.

Three steps: `take` records the submissions, `grade_all` grades those that the journal lacks, and
`publish` (of `publishing`) turns the journal into output. Each step may be interrupted at any point
and repeated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from autograder.base import pool
from autograder.base.files import write_whole
from autograder.grading.course_lab import CourseLab
from autograder.grading.registry import find_lab, lab_names
from autograder.model.result import Result
from autograder.model.submission import Quarantine, SubmissionKey
from autograder.notebooks.intake import find_submissions
from autograder.runs.grader import BUSY, Grader, keep, ungraded
from autograder.runs.room import Classroom, Handed
from autograder.store.journal import Journal
from autograder.store.out_format import write_format
from autograder.store.roll import note_taken, taken

__all__ = ["Elsewhere", "grade_all", "grade_notebooks", "take"]

_SPARE_SECONDS = 300.0  # for one submission, beyond the time that its code may take

# Grades submissions on other machines, and yields each with its outcome.
Elsewhere = Callable[
    [Classroom, CourseLab, Sequence[Handed], pool.Work[Handed, str]],
    Iterator[tuple[Handed, Any]],
]


def take(room: Classroom, submitted: Path) -> list[Handed]:
    """Record the submissions below `submitted`, and return them.

    From then on `autograder audit` expects a result for each of them.
    """
    handed = find_submissions(submitted, room.lab, lab_names(room.course))
    if not taken(room.out):
        write_format(room.out)  # publishing migrates an older folder
    note_taken(room.out, room.lab, [student for student, _ in handed])
    return handed


def grade_all(
    room: Classroom, handed: Sequence[Handed], workers: int, elsewhere: Elsewhere | None = None
) -> Iterator[str]:
    """Grade the submissions without a result in the journal; yield each student when done.

    They are graded by `workers` processes of this machine, or on the machines that `elsewhere`
    distributes them to. Submissions for which the machine was too busy are graded once more, one at
    a time, after all others.
    """
    lab = find_lab(room.lab, room.course, room.rules)
    busy: list[Handed] = []
    for item, outcome in _outcomes(room, lab, handed, workers, elsewhere, last_try=False):
        if outcome == BUSY:
            busy.append(item)
        else:
            yield _noted(room, lab, item, outcome)
    for item in busy:
        for _, outcome in _outcomes(room, lab, [item], 1, elsewhere, last_try=True):
            yield _noted(room, lab, item, outcome)


def _outcomes(
    room: Classroom,
    lab: CourseLab,
    handed: Sequence[Handed],
    workers: int,
    elsewhere: Elsewhere | None,
    *,
    last_try: bool,
) -> Iterator[tuple[Handed, Any]]:
    shared = min(workers, len(handed)) > 1  # a lone worker loads the tasks while its sandbox starts
    work: pool.Work[Handed, str] = pool.Work(
        partial(Grader, room, lab=lab, last_try=last_try),
        preload=(__name__, *(lab.preload if shared else ())),
        wall_seconds=_SPARE_SECONDS + room.limits.wall_seconds * len(lab.notebooks),
    )
    if elsewhere is None:
        yield from pool.run_all(handed, work, workers)
    else:
        yield from elsewhere(room, lab, handed, work)


def _noted(room: Classroom, lab: CourseLab, item: Handed, outcome: Any) -> str:
    """Record a failure if no worker could finish the item, and return its student."""
    student, path = item
    if isinstance(outcome, pool.Failure) and not _has_grade(room, lab, student, path):
        failed = ungraded(room, student, "failed", outcome.reason)
        keep(room, failed, b"", room.terms())
    return student


def _has_grade(room: Classroom, lab: CourseLab, student: str, path: Path) -> bool:
    """Whether there is a grade for exactly this submission, which stays if every worker died."""
    journal, key = Journal(room.out), SubmissionKey(student, room.lab)
    terms = journal.terms(key) if room.keeps_old else room.terms()
    try:
        raw = lab.read(path).packed()
    except Quarantine:
        return False
    return terms is not None and journal.find(key, raw, terms) is not None


def grade_notebooks(
    room: Classroom, notebooks: Sequence[Mapping[str, Any]], workers: int
) -> list[Result]:
    """Grade notebooks (nbformat 4 JSON) as if a class had submitted them; one result each."""
    submitted = room.out.path / "submitted"
    for number, notebook in enumerate(notebooks):
        path = submitted / f"n{number:05}" / room.lab / f"{room.lab}.ipynb"
        write_whole(path, json.dumps(notebook).encode())
    handed = find_submissions(submitted, room.lab, lab_names(room.course))
    for _ in grade_all(room, handed, workers):
        pass
    results = [Journal(room.out).read(SubmissionKey(student, room.lab)) for student, _ in handed]
    return [result for result in results if result is not None]
