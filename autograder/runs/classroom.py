"""Grades one lab's submissions of a whole class, from a folder of notebooks to an out folder.

Three steps: `take` writes down who handed in, `grade_all` grades what the journal has not yet, and
`publish` (of `publishing`) turns the journal into all that leaves. Each may be cut off at any point
and done again.
"""

from __future__ import annotations

import json
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from autograder.base import pool
from autograder.base.files import write_whole
from autograder.base.limits import Limits
from autograder.grading.grade import Graded
from autograder.grading.registry import CourseLab, find_lab, lab_names
from autograder.model.result import End, Result
from autograder.model.scoring import SANE, Rules
from autograder.model.submission import Quarantine
from autograder.notebooks.intake import find_submissions
from autograder.publish.pages import write_pages
from autograder.rules.semester import read_semester
from autograder.rules.waivers import waive, waivers
from autograder.sandbox.host.isolation import IsolationError
from autograder.sandbox.host.sandbox import Sandbox
from autograder.store.fingerprint import changed, terms_of
from autograder.store.journal import Journal
from autograder.store.roll import note_taken, taken

__all__ = [
    "Classroom",
    "Elsewhere",
    "Grader",
    "Handed",
    "course_secret",
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
    """What all submissions of one grading have in common. Each worker gets a copy.

    `root` is the course's folder, with labs/ and solutions/ in it. `isolated=False` runs the
    students' code without the sandbox, and marks every result. With `keeps_old` a grade stays that
    was made under other terms, or lacked a GPU and left something out: what `autograder grade`
    does, since only `regrade` shows what changes, and asks.
    """

    lab: str
    out: Path
    root: Path
    secret: bytes = field(repr=False)
    limits: Limits = field(default_factory=Limits)
    isolated: bool = True
    keeps_old: bool = False
    rules: Rules = SANE


# What has submissions graded on other machines: it yields each with its outcome.
Elsewhere = Callable[
    [Classroom, CourseLab, Sequence[Handed], pool.Work[Handed, str]],
    Iterator[tuple[Handed, Any]],
]


def take(room: Classroom, submitted: Path) -> list[Handed]:
    """Return the submissions below `submitted`, after writing down that they were taken in.

    From then on `autograder audit` asks for the end of each of them.
    """
    handed = find_submissions(submitted, room.lab, lab_names(room.root))
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
    lab = find_lab(room.lab, room.root, room.rules)
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
    work: pool.Work[Handed, str] = pool.Work(
        partial(Grader, room, last_try=last_try),
        preload=(__name__, *lab.preload),
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
    journal = Journal(room.out)
    terms = journal.terms(room.lab, student) if room.keeps_old else _terms(room)
    try:
        raw = lab.read(path).packed()
    except Quarantine:
        return False
    return terms is not None and journal.find(room.lab, student, raw, terms) is not None


def outdated(out: Path, root: Path, limits: Limits | None = None) -> list[str]:
    """Return a sentence for each way in which grades in `out` were made under other terms.

    Those are another version of a lab's tasks, or, where `limits` are given, other limits: what
    such a grade says of a student may not be what grading again would say.
    """
    journal, counts = Journal(out), Counter[tuple[str, str]]()
    entries, rules = taken(out), read_semester(out, root).ordinary
    now = {
        lab: terms_of(lab, root, limits or Limits(), isolated=True, rules=rules)
        for lab in {lab for _, lab in entries}
    }
    for student, lab in entries:
        old = journal.terms(lab, student)
        if old is not None:
            # Grades from outside the sandbox are marked as such wherever they are shown.
            same = {"isolated": old["isolated"]} | ({} if limits else {"limits": old["limits"]})
            counts.update((lab, way) for way in changed(old, now[lab] | same))
    return [
        f"{lab}: {count} of the grades were made under {way}"
        for (lab, way), count in sorted(counts.items())
    ]


def grade_notebooks(
    room: Classroom, notebooks: Sequence[Mapping[str, Any]], workers: int
) -> list[Result]:
    """Grade notebooks, nbformat 4's JSON, as if a class had handed them in; one result each."""
    submitted = room.out / "submitted"
    for number, notebook in enumerate(notebooks):
        path = submitted / f"n{number:05}" / room.lab / f"{room.lab}.ipynb"
        write_whole(path, json.dumps(notebook).encode())
    handed = find_submissions(submitted, room.lab, lab_names(room.root))
    for _ in grade_all(room, handed, workers):
        pass
    results = [Journal(room.out).read(room.lab, student) for student, _ in handed]
    return [result for result in results if result is not None]


def course_secret(path: Path) -> bytes:
    """Return the course's secret, from which all cases are drawn; made on first use.

    Whoever has it can draw the cases of any submission, so its owner alone may read it.
    """
    if not path.exists():
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "w") as file:
            file.write(secrets.token_hex(32))
    try:
        secret = bytes.fromhex(path.read_text().strip())
    except ValueError:
        secret = b""
    if len(secret) < 16:
        raise ValueError(
            f"{path} holds no secret: expected at least 32 hexadecimal digits. "
            "Put the course's secret back from a copy, or delete the file to have one made."
        )
    return secret


class Grader:
    """Grades one submission after another, in one sandbox that starts when the first needs it.

    `slot` tells graders apart that work on one machine at the same time; `make_sandbox` is for
    places where another kind of sandbox is called for. Without `last_try`, nothing is kept of a
    submission that the machine was too busy for, and it has to be graded again.
    """

    def __init__(
        self,
        room: Classroom,
        slot: int,
        make_sandbox: Callable[..., Sandbox] = Sandbox,
        *,
        last_try: bool = True,
    ) -> None:
        self._room = room
        self._last_try = last_try
        self._make_sandbox = make_sandbox
        self._slot = slot
        self._lab = find_lab(room.lab, room.root, room.rules)
        self._lab.prepare()
        self._terms = _terms(room)
        self._sandbox: Sandbox | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._sandbox is not None:
            self._sandbox.close()

    def start(self) -> Sandbox:
        """Return the sandbox, started now if it was not yet."""
        if self._sandbox is None:
            limits, isolated = self._room.limits, self._room.isolated
            self._sandbox = self._make_sandbox(
                self._lab.hides,
                slot=self._slot,
                limits=limits,
                isolated=isolated,
                files=self._lab.files,
                measured=any(task.trust == "measured" for task in self._lab.tasks),
            )
        return self._sandbox

    def _is_done(self, student: str, raw: bytes) -> bool:
        """Whether the journal has a result of this very submission that is to stay."""
        room, journal, terms = self._room, Journal(self._room.out), self._terms
        if room.keeps_old:
            held = journal.terms(room.lab, student)
            # What was graded outside the sandbox does not pass for what is graded inside.
            if held is not None and (held["isolated"] or not room.isolated):
                terms = held
        result = journal.find(room.lab, student, raw, terms)
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
    write_pages(waive(graded.result, waivers(room.out)), room.out, room.root)
    Journal(room.out).keep(graded.result, raw, graded.answers, terms, graded.asked)


def _failed_at(error: Exception) -> str:
    return f"The grader failed at this submission: {type(error).__name__}: {error}"


def _terms(room: Classroom) -> dict[str, Any]:
    return terms_of(room.lab, room.root, room.limits, isolated=room.isolated, rules=room.rules)


def _ended(room: Classroom, student: str, end: End, reason: str) -> Graded:
    return Graded(Result(student, room.lab, end, reason, isolated=room.isolated), {})
