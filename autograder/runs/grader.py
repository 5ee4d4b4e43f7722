"""Grades one submission after another into the journal: the work of each grading process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from autograder.grading.course_lab import CourseLab
from autograder.grading.grade import Graded
from autograder.grading.registry import find_lab
from autograder.model.result import End, Result
from autograder.model.submission import Quarantine, SubmissionKey
from autograder.publish.pages import write_pages
from autograder.rules.counting import counting_of
from autograder.runs.room import Classroom, Handed
from autograder.sandbox.host.backend import Backend
from autograder.sandbox.host.isolation import IsolationError
from autograder.sandbox.host.namespaces import Namespaces
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.unprotected import Unprotected
from autograder.store.journal import Journal

__all__ = ["BUSY", "Grader", "keep", "ungraded"]

BUSY = "busy"  # the outcome of a submission that has to be graded again


class Grader:
    """Grades one submission after another, in sandboxes that start on first use.

    `slot` distinguishes graders that work on one machine at the same time. `backend` is the way to
    isolate submissions, by default namespaces. `lab` is the room's lab if it was read before:
    reading an ordinary assignment takes seconds. Without `last_try`, nothing is stored of a
    submission for which the machine was too busy, and it has to be graded again.
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
        self._terms = room.terms()
        self._sandboxes: dict[frozenset[str], Sandbox] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for sandbox in self._sandboxes.values():
            sandbox.close()

    def start(self, heavy: Sequence[str] = ("torch",)) -> Sandbox:
        """Return a sandbox that has at least these modules imported, started on first use."""
        for there, sandbox in self._sandboxes.items():
            if heavy and there.issuperset(heavy):
                return sandbox
        wanted = frozenset(heavy)
        if wanted not in self._sandboxes:
            self._sandboxes[wanted] = Sandbox(
                self._lab.hides,
                slot=self._slot,
                limits=self._room.limits,
                backend=self._backend,
                files=self._lab.files,
                measured=self._lab.measured,
                ranks=lambda: self._lab.ranks,  # loads the tasks, while the sandbox starts
                preload=(*heavy, *self._lab.imports),
            )
        return self._sandboxes[wanted]

    def _is_done(self, student: str, raw: bytes) -> bool:
        """Whether the journal has a result for exactly this submission that should stay."""
        room, journal, terms = self._room, Journal(self._room.out), self._terms
        key = SubmissionKey(student, room.lab)
        if room.keeps_old:
            held = journal.terms(key)
            # A grade from outside the sandbox must not pass for one from inside.
            if held is not None and (held["isolated"] or not room.isolated):
                terms = held
        result = journal.find(key, raw, terms)
        if result is None:
            return False
        lacks_gpu = any(verdict.status == "needs_gpu" for verdict in result.verdicts)
        return room.keeps_old or not lacks_gpu or not self.start().has_gpu

    def __call__(self, item: Handed) -> str:
        """Grade one submission into the journal, unless it is there already.

        Returns BUSY if nothing was stored because the machine was too busy, and otherwise nothing.
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
            graded = ungraded(room, student, "quarantined", str(refusal))
        except (IsolationError, MemoryError):
            raise  # this worker can't go on, but another one may
        except Exception as error:
            graded = ungraded(room, student, "failed", _failed_at(error))
        if graded.busy and not self._last_try:
            return BUSY
        try:
            keep(room, graded, raw, self._terms)
        except (OSError, MemoryError):
            raise  # not the submission's fault
        except Exception as error:
            keep(room, ungraded(room, student, "failed", _failed_at(error)), raw, self._terms)
        return ""


def keep(room: Classroom, graded: Graded, raw: bytes, terms: Mapping[str, Any]) -> None:
    """Write the result's pages before the result, so that a stored result always has pages."""
    write_pages(counting_of(room.out, room.course).count(graded.result), room.out, room.course)
    Journal(room.out).keep(graded.result, raw, graded.answers, terms, graded.asked)


def ungraded(room: Classroom, student: str, end: End, reason: str) -> Graded:
    """The result of a submission without verdicts, with the reason."""
    result = Result(student=student, lab=room.lab, end=end, reason=reason, isolated=room.isolated)
    return Graded(result, answers={})


def _failed_at(error: Exception) -> str:
    return f"The grader failed on this submission: {type(error).__name__}: {error}"
