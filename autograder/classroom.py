"""Classroom: one lab's submissions of a whole class, from a folder of notebooks to an out folder.

Three steps: `take` writes down who handed in, `grade_all` grades what the journal has not yet,
`publish` turns the journal into all that leaves. Each may be cut off at any point and done again.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from autograder import engine
from autograder.export import write_grades
from autograder.feedback import feedback_path, write_feedback
from autograder.files import write_whole
from autograder.grade import Graded, grade
from autograder.intake import find_submissions, read_submission, take_in_bytes
from autograder.isolation import IsolationError
from autograder.journal import Journal
from autograder.released import release_of
from autograder.result import End, Result
from autograder.sandbox import Limits, Sandbox
from autograder.submission import Quarantine
from autograder.task import Lab
from autograder.tasks import find_lab

__all__ = [
    "Classroom",
    "Handed",
    "course_secret",
    "grade_all",
    "grade_handed",
    "grade_notebooks",
    "publish",
    "take",
    "taken",
]

Handed = tuple[str, Path]  # a student, and the notebook that the student handed in

_TAKEN = "taken.json"


@dataclass(frozen=True)
class Classroom:
    """What all submissions of one grading have in common. Each worker gets a copy.

    `root` is the course's folder, with labs/ and solutions/ in it. `isolated=False` runs the
    students' code without the sandbox, and marks every result.
    """

    lab: str
    out: Path
    root: Path
    secret: bytes = field(repr=False)
    limits: Limits = field(default_factory=Limits)
    isolated: bool = True


def take(room: Classroom, submitted: Path) -> list[Handed]:
    """Return the submissions below `submitted`, after writing down that they were taken in.

    From then on `autograder audit` asks for the end of each of them.
    """
    handed = find_submissions(submitted, room.lab)
    others = [[student, lab] for student, lab in taken(room.out) if lab != room.lab]
    entries = sorted(others + [[student, room.lab] for student, _ in handed])
    write_whole(room.out / _TAKEN, json.dumps(entries, indent=0).encode())
    return handed


def taken(out: Path) -> list[tuple[str, str]]:
    """Return (student, lab) of all submissions that were taken in into `out`, of every lab."""
    path = out / _TAKEN
    return (
        [(student, lab) for student, lab in json.loads(path.read_bytes())] if path.exists() else []
    )


def grade_all(room: Classroom, handed: Sequence[Handed], workers: int) -> Iterator[str]:
    """Grade the submissions that the journal has no result of; yield each student when done."""
    preload = [__name__, f"autograder.tasks.{find_lab(room.lab).number}"]
    done = engine.run_all(handed, partial(_worker, room), workers, preload)
    for (student, _), failure in done:
        if isinstance(failure, engine.Failure):
            failed = _ended(room, student, "failed", failure.reason)
            Journal(room.out).keep(failed.result, b"", {})
        yield student


def grade_notebooks(
    room: Classroom, notebooks: Sequence[Mapping[str, Any]], workers: int
) -> list[Result]:
    """Grade notebooks, nbformat 4's JSON, as if a class had handed them in; one result each."""
    submitted = room.out / "submitted"
    for number, notebook in enumerate(notebooks):
        path = submitted / f"n{number:05}" / room.lab / f"{room.lab}.ipynb"
        write_whole(path, json.dumps(notebook).encode())
    handed = find_submissions(submitted, room.lab)
    for _ in grade_all(room, handed, workers):
        pass
    results = [Journal(room.out).read(room.lab, student) for student, _ in handed]
    return [result for result in results if result is not None]


def publish(out: Path, root: Path) -> list[Result]:
    """Write grades.csv, the gradebook and all feedback pages that are missing; return the results.

    They hold every submission that was taken in and has its result, of all labs.
    """
    from autograder.gradebook import write_gradebook  # nbgrader, which no worker has to wait for

    journal = Journal(out)
    results = [journal.read(lab, student) for student, lab in taken(out)]
    there = [result for result in results if result is not None]
    for result in there:
        if not feedback_path(result, out).is_file():
            write_feedback(result, out, root)
    write_gradebook(there, out, root)
    write_grades(there, out / "grades.csv", root)
    return there


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


@contextmanager
def _worker(room: Classroom, slot: int) -> Iterator[Callable[[Handed], None]]:
    """Grade one submission after another, in one sandbox that starts when the first needs it."""
    lab = find_lab(room.lab)
    release = release_of(room.lab, room.root / "labs")
    with ExitStack() as stack:
        prepared: list[Sandbox] = []

        def sandbox() -> Sandbox:
            if not prepared:
                fresh = Sandbox(lab.hides, slot=slot, limits=room.limits, isolated=room.isolated)
                prepared.append(stack.enter_context(fresh))
            return prepared[0]

        def work(item: Handed) -> None:
            grade_handed(room, lab, release, item, sandbox)

        yield work


def grade_handed(
    room: Classroom,
    lab: Lab,
    release: dict[str, Any],
    item: Handed,
    sandbox: Callable[[], Sandbox],
) -> None:
    """Grade one submission into the journal, and write its feedback page.

    What it was journalled with already is left alone. `sandbox()` is called only where needed.
    """
    student, path = item
    raw = b""
    try:
        raw = read_submission(path)
        if Journal(room.out).find(room.lab, student, raw, isolated=room.isolated) is not None:
            return
        submission = take_in_bytes(student, room.lab, raw, release)
        graded = grade(lab, submission, sandbox(), room.secret)
    except Quarantine as refusal:
        graded = _ended(room, student, "quarantined", str(refusal))
    except IsolationError:
        raise  # this worker cannot go on; another one may
    except Exception as error:
        reason = f"The grader failed at this submission: {type(error).__name__}: {error}"
        graded = _ended(room, student, "failed", reason)
    Journal(room.out).keep(graded.result, raw, graded.answers)
    write_feedback(graded.result, room.out, room.root)


def _ended(room: Classroom, student: str, end: End, reason: str) -> Graded:
    return Graded(Result(student, room.lab, end, reason, isolated=room.isolated), {})
