"""One student's notebook, read, put in order, and ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from autograder.base.errors import AutograderError
from autograder.model.note import Note

__all__ = ["Contents", "Missing", "Quarantine", "RunCell", "Submission", "SubmissionKey"]


class Quarantine(AutograderError, ValueError):
    """The submission can't be read as this lab's notebook; the message says why."""


class Missing(Quarantine):
    """A submission's file or folder doesn't exist; `there` lists what its folder holds instead."""

    def __init__(self, message: str, there: tuple[str, ...]) -> None:
        super().__init__(message)
        self.there = there


class SubmissionKey(NamedTuple):
    """The student and the lab, which identify a submission.

    Keys sort by student, then by lab, as the rows of grades.csv do.
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

    #: Notebooks by name.
    notebooks: Mapping[str, bytes]
    #: Files beside the notebooks, by relative path.
    files: Mapping[str, bytes] = field(default_factory=dict)
    #: One sentence for each file that couldn't be read.
    unread: tuple[str, ...] = ()

    def packed(self) -> bytes:
        """Return everything as one string of bytes; a lone notebook is returned unchanged."""
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

    #: The cell's index in `Submission.notebook`, where its outputs go.
    index: int
    #: The code to run.
    source: str
    #: `given` cells are the release's own, restored; `solution` cells answer `task`; `check` cells
    #: test it, hidden tests included; `own` cells are the student's other cells.
    kind: Literal["given", "check", "solution", "own"]
    #: The id of its task, if it belongs to one.
    task: str | None = None
    #: Whether it is a solution cell that is unchanged since the release.
    is_untouched: bool = False


@dataclass(frozen=True)
class Submission:
    """A notebook as it will be graded."""

    #: The student's id.
    student: str
    #: The lab's name.
    lab: str
    #: The submitted bytes.
    raw: bytes
    #: nbformat 4 JSON with the released cells restored and all outputs cleared.
    notebook: dict[str, Any]
    #: The cells to run.
    cells: tuple[RunCell, ...]
    #: What was repaired, and other remarks.
    notes: tuple[Note, ...] = ()
    #: The lab's release that it names; empty if it names none.
    release: str = ""
    #: The files of its working directory.
    files: Mapping[str, bytes] = field(default_factory=dict)
