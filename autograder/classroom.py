"""Classroom: one lab's submissions of a whole class, from a folder of notebooks to an out folder."""

from __future__ import annotations

import functools
import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from autograder import engine
from autograder.export import write_grades
from autograder.feedback import write_feedback
from autograder.files import write_whole
from autograder.grade import grade
from autograder.gradebook import write_gradebook
from autograder.intake import find_submissions, take_in
from autograder.isolation import IsolationError, missing_layers
from autograder.journal import Journal
from autograder.result import Result
from autograder.sandbox import Limits, Sandbox
from autograder.submission import Quarantine
from autograder.tasks import find_lab

__all__ = ["Classroom", "course_secret", "grade_class"]

_SECRET_BYTES = 32


@dataclass(frozen=True)
class Classroom:
    """What all submissions of one grading have in common. Workers get a copy."""

    lab: str
    out: Path
    root: Path
    secret: bytes
    limits: Limits
    isolated: bool = True


def grade_class(
    room: Classroom,
    submitted: Path,
    *,
    workers: int,
    watch: Callable[[Sequence[str]], Iterator[str]] = iter,
) -> list[Result]:
    """Grade all submissions below `submitted` into `room.out`, and return their results.

    What the journal has already is not graded again, so a run that was cut off goes on where it
    stopped. `watch` wraps the list of students that are left, as tqdm does, to show the progress.
    Raises IsolationError where a layer of isolation is missing and `room.isolated` asks for it.
    """
    if room.isolated:
        missing = missing_layers()
        if missing:
            raise IsolationError(" ".join(missing))
    return []


def course_secret(root: Path) -> bytes:
    """Return the course's secret, from which all cases are drawn; made on first use.

    Whoever has it can draw the cases of any submission, so it is readable by its owner alone.
    """
    path = root / ".course_secret"
    try:
        return bytes.fromhex(path.read_text())
    except FileNotFoundError:
        secret = secrets.token_bytes(_SECRET_BYTES)
        path.touch(mode=0o600)
        path.write_text(secret.hex())
        return secret
