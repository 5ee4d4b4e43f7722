"""Grades one lab's submissions of a whole class, from a folder of notebooks to an out folder.

Three steps: `take` writes down who handed in, `grade_all` grades what the journal has not yet, and
`publish` (of `publishing`) turns the journal into all that leaves. Each may be cut off at any point
and done again.

Long because a class run hands each worker a grader that follows the same room, and the commands
know both by this module.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from autograder.base import pool
from autograder.base.course import Course
from autograder.base.files import write_whole
from autograder.base.limits import Limits
from autograder.grading.grade import Graded
from autograder.grading.registry import CourseLab, find_lab, lab_names
from autograder.model.result import End, Result
from autograder.model.scoring import SANE, Rules
from autograder.model.submission import Quarantine, SubmissionKey
from autograder.notebooks.intake import find_submissions
from autograder.publish.pages import write_pages
from autograder.rules.counting import counting_of
from autograder.rules.semester import read_semester
from autograder.sandbox.host.backend import Backend
from autograder.sandbox.host.isolation import IsolationError
from autograder.sandbox.host.namespaces import Namespaces
from autograder.sandbox.host.sandbox import EVERYTHING, Sandbox
from autograder.sandbox.host.unprotected import Unprotected
from autograder.store.fingerprint import changed, terms_of
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from autograder.store.out_format import write_format
from autograder.store.roll import note_taken, taken

__all__ = [
    "Classroom",
    "Elsewhere",
    "Grader",
    "Handed",
    "Outdated",
    "grade_all",
    "grade_notebooks",
    "outdated",
    "take",
]

Handed = tuple[str, Path]  # a student, and the notebook that the student handed in

_BUSY = "busy"  # what a grader says of a submission that it has to be given again
_SPARE_SECONDS = 300.0  # of a submission, beyond what its code may take


@dataclass(frozen=True)
class Classroom:
    """What all submissions of one grading have in common. Each worker gets a copy."""

    #: The lab's name.
    lab: str
    #: Where the results go.
    out: OutFolder
    #: The course that gives the lab.
    course: Course
    #: The course's secret, from which cases are drawn.
    secret: bytes = field(repr=False)
    #: What one submission may use.
    limits: Limits = field(default_factory=Limits)
    #: False runs students' code without the sandbox, and marks every result.
    isolated: bool = True
    #: Keeps a grade that was made under other terms, or that left something out for lack of a GPU:
    #: what `autograder grade` does, since only `regrade` shows what changes, and asks.
    keeps_old: bool = False
    #: What an ordinary assignment is scored by.
    rules: Rules = SANE


# What has submissions graded on other machines: it yields each with its outcome.
Elsewhere = Callable[
    [Classroom, CourseLab, Sequence[Handed], pool.Work[Handed, str]],
    Iterator[tuple[Handed, Any]],
]


@dataclass(frozen=True)
class Outdated:
    """Grades of one lab that were made under terms other than today's."""

    #: The lab.
    lab: str
    #: How many of its grades.
    count: int
    #: What is different, as `changed` says it.
    way: str

    def __str__(self) -> str:
        return f"{self.lab}: {self.count} of the grades were made under {self.way}"


def take(room: Classroom, submitted: Path) -> list[Handed]:
    """Return the submissions below `submitted`, after writing down that they were taken in.

    From then on `autograder audit` asks for the end of each of them.
    """
    handed = find_submissions(submitted, room.lab, lab_names(room.course))
    if not taken(room.out):
        write_format(room.out)  # an older folder is of the present format once it is published
    note_taken(room.out, room.lab, [student for student, _ in handed])
    return handed


def grade_all(
    room: Classroom, handed: Sequence[Handed], workers: int, elsewhere: Elsewhere | None = None
) -> Iterator[str]:
    """Grade the submissions that the journal has no result of; yield each student when done.

    They are graded by `workers` processes of this machine, or by what `elsewhere` spreads them
    over. What the machine was too busy for is graded once more, one at a time, when all others are
    done.
    """
    lab = find_lab(room.lab, room.course, room.rules)
    busy: list[Handed] = []
    for item, outcome in _outcomes(room, lab, handed, workers, elsewhere, last_try=False):
        if outcome == _BUSY:
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
    shared = min(workers, len(handed)) > 1  # one worker loads the tasks while its sandbox starts
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
    """The student of an item that is done; one that no worker could finish is written down."""
    student, path = item
    if isinstance(outcome, pool.Failure) and not _has_grade(room, lab, student, path):
        failed = _ended(room, student, "failed", outcome.reason)
        _keep(room, failed, b"", _terms(room))
    return student


def _has_grade(room: Classroom, lab: CourseLab, student: str, path: Path) -> bool:
    """Whether there is a grade of this very submission, which stays though every worker died."""
    journal, key = Journal(room.out), SubmissionKey(student, room.lab)
    terms = journal.terms(key) if room.keeps_old else _terms(room)
    try:
        raw = lab.read(path).packed()
    except Quarantine:
        return False
    return terms is not None and journal.find(key, raw, terms) is not None


def outdated(out: OutFolder, course: Course, limits: Limits | None = None) -> list[Outdated]:
    """Return each way in which grades in `out` were made under other terms, by lab.

    Such terms are another version of a lab's tasks or, if `limits` are given, other limits. Grading
    again may come to other grades.
    """
    journal, counts = Journal(out), Counter[tuple[str, str]]()
    entries, rules = taken(out), read_semester(out, course).ordinary
    now = {
        lab: terms_of(lab, course, limits or Limits(), isolated=True, rules=rules)
        for lab in {key.lab for key in entries}
    }
    for key in entries:
        old = journal.terms(key)
        if old is not None:
            # Grades from outside the sandbox are marked as such wherever they are shown.
            same = {"isolated": old["isolated"]} | ({} if limits else {"limits": old["limits"]})
            counts.update((key.lab, way) for way in changed(old, now[key.lab] | same))
    return [Outdated(lab, count, way) for (lab, way), count in sorted(counts.items())]


def grade_notebooks(
    room: Classroom, notebooks: Sequence[Mapping[str, Any]], workers: int
) -> list[Result]:
    """Grade notebooks, nbformat 4's JSON, as if a class had handed them in; one result each."""
    submitted = room.out.path / "submitted"
    for number, notebook in enumerate(notebooks):
        path = submitted / f"n{number:05}" / room.lab / f"{room.lab}.ipynb"
        write_whole(path, json.dumps(notebook).encode())
    handed = find_submissions(submitted, room.lab, lab_names(room.course))
    for _ in grade_all(room, handed, workers):
        pass
    results = [Journal(room.out).read(SubmissionKey(student, room.lab)) for student, _ in handed]
    return [result for result in results if result is not None]


class Grader:
    """Grades one submission after another, in one sandbox that starts when the first needs it.

    `slot` tells graders apart that work on one machine at the same time. `backend` is the way to
    shut submissions in, namespaces if none is given. `lab` is what the room grades, if it was read
    before: reading an ordinary assignment takes seconds. Without `last_try`, nothing is kept of a
    submission that the machine was too busy for, and it has to be graded again.
    """

    def __init__(
        self,
        room: Classroom,
        slot: int,
        backend: Backend | None = None,
        *,
        lab: CourseLab | None = None,
        last_try: bool = True,
    ) -> None:
        self._room = room
        self._last_try = last_try
        self._backend = backend or (Namespaces() if room.isolated else Unprotected())
        self._slot = slot
        self._lab = lab or find_lab(room.lab, room.course, room.rules)
        self._lab.prepare()
        self._terms = _terms(room)
        self._sandboxes: dict[bool, Sandbox] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for sandbox in self._sandboxes.values():
            sandbox.close()

    def start(self, torch: bool = True) -> Sandbox:
        """Return the sandbox that has torch imported, or the one without; started on first use."""
        if torch not in self._sandboxes:
            self._sandboxes[torch] = Sandbox(
                self._lab.hides,
                slot=self._slot,
                limits=self._room.limits,
                backend=self._backend,
                files=self._lab.files,
                measured=self._lab.measured,
                ranks=self._lab.ranks,
                preload=(*(EVERYTHING if torch else ()), *self._lab.imports),
            )
        return self._sandboxes[torch]

    def _is_done(self, student: str, raw: bytes) -> bool:
        """Whether the journal has a result of this very submission that is to stay."""
        room, journal, terms = self._room, Journal(self._room.out), self._terms
        key = SubmissionKey(student, room.lab)
        if room.keeps_old:
            held = journal.terms(key)
            # What was graded outside the sandbox does not pass for what is graded inside.
            if held is not None and (held["isolated"] or not room.isolated):
                terms = held
        result = journal.find(key, raw, terms)
        if result is None:
            return False
        lacks_gpu = any(verdict.status == "needs_gpu" for verdict in result.verdicts)
        return room.keeps_old or not lacks_gpu or not self.start().has_gpu

    def __call__(self, item: Handed) -> str:
        """Grade one submission into the journal; one that is there already is left alone.

        Returns "busy" if nothing was kept since the machine was too busy, and else nothing.
        """
        room, (student, path) = self._room, item
        raw = b""
        try:
            handed = self._lab.read(path)
            raw = handed.packed()
            if self._is_done(student, raw):
                return ""
            graded = self._lab.grade(student, handed, self.start, room.secret)
        except Quarantine as refusal:
            graded = _ended(room, student, "quarantined", str(refusal))
        except (IsolationError, MemoryError):
            raise  # this worker cannot go on; another one may
        except Exception as error:
            graded = _ended(room, student, "failed", _failed_at(error))
        if graded.busy and not self._last_try:
            return _BUSY
        try:
            _keep(room, graded, raw, self._terms)
        except (OSError, MemoryError):
            raise  # no fault of what is to be written
        except Exception as error:
            _keep(room, _ended(room, student, "failed", _failed_at(error)), raw, self._terms)
        return ""


def _keep(room: Classroom, graded: Graded, raw: bytes, terms: Mapping[str, Any]) -> None:
    """Write what follows from a result, then the result: where that is, the rest is there too."""
    write_pages(counting_of(room.out, room.course).count(graded.result), room.out, room.course)
    Journal(room.out).keep(graded.result, raw, graded.answers, terms, graded.asked)


def _failed_at(error: Exception) -> str:
    return f"The grader failed at this submission: {type(error).__name__}: {error}"


def _terms(room: Classroom) -> dict[str, Any]:
    return terms_of(room.lab, room.course, room.limits, isolated=room.isolated, rules=room.rules)


def _ended(room: Classroom, student: str, end: End, reason: str) -> Graded:
    return Graded(Result(student, room.lab, end, reason, isolated=room.isolated), {})
