"""One student's notebook, read and put in order, ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from autograder.base.errors import AutograderError
from autograder.model.note import Note

__all__ = ["Contents", "Missing", "Quarantine", "RunCell", "Submission", "SubmissionKey"]


class Quarantine(AutograderError, ValueError):
    """What was handed in cannot be read as this lab's notebook; the message says why."""


class Missing(Quarantine):
    """A file or folder of a submission is not there; `there` is what stands in its place."""

    def __init__(self, message: str, there: tuple[str, ...]) -> None:
        super().__init__(message)
        self.there = there


class SubmissionKey(NamedTuple):
    """Whose work on which lab: what tells the submissions of a course apart.

    Keys are in order by student, then by lab, as the rows of grades.csv are.
    """

    #: The student's id, which names a folder.
    student: str
    #: The lab's name, or an ordinary assignment's.
    lab: str

    def __str__(self) -> str:
        return f"{self.student}, {self.lab}"


@dataclass(frozen=True)
class Contents:
    """What a student submitted for a lab, as bytes."""

    #: The notebooks by their names.
    notebooks: Mapping[str, bytes]
    #: The files beside them, by their paths from there.
    files: Mapping[str, bytes] = field(default_factory=dict)
    #: A sentence for each way in which something there was not read.
    unread: tuple[str, ...] = ()

    def packed(self) -> bytes:
        """Return all of it as one string of bytes: that of a notebook alone as it is."""
        if len(self.notebooks) == 1 and not self.files and not self.unread:
            return next(iter(self.notebooks.values()))
        told = "\n".join(self.unread).encode(errors="replace")
        parts = sorted(self.notebooks.items())
        parts += [(f"./{path}", raw) for path, raw in sorted(self.files.items())]
        parts += [("", told)] if told else []
        return b"".join(f"{name} {len(raw)}\n".encode() + raw for name, raw in parts)


@dataclass(frozen=True)
class RunCell:
    """One code cell that the grader runs, in the notebook's order."""

    #: The cell's place in `Submission.notebook`, where its outputs go.
    index: int
    #: What runs.
    source: str
    #: `given` cells are the release's own, put back as they were; `solution` cells answer `task`;
    #: `check` cells test it, hidden tests included; `own` cells are all others of the student's.
    kind: Literal["given", "check", "solution", "own"]
    #: The task that it is about, if it is about one.
    task: str | None = None
    #: Whether it is a solution cell as it was released, in which nobody wrote anything.
    is_untouched: bool = False


@dataclass(frozen=True)
class Submission:
    """A notebook as it will be graded."""

    #: The student's id.
    student: str
    #: The lab's name.
    lab: str
    #: The bytes that were submitted.
    raw: bytes
    #: nbformat 4's JSON with the released cells restored and all outputs cleared.
    notebook: dict[str, Any]
    #: What is to run.
    cells: tuple[RunCell, ...]
    #: What was repaired, and what else there is to say.
    notes: tuple[Note, ...] = ()
    #: Which release of the lab it says it is of; empty if it does not say.
    release: str = ""
    #: What is in its working directory.
    files: Mapping[str, bytes] = field(default_factory=dict)
