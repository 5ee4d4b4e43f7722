"""One student's notebook, read and put in order, ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Contents", "Missing", "Quarantine", "RunCell", "Submission"]


class Quarantine(ValueError):
    """What was handed in cannot be read as this lab's notebook; the message says why."""


class Missing(Quarantine):
    """A file or folder of a submission is not there; `there` is what stands in its place."""

    def __init__(self, message: str, there: tuple[str, ...]) -> None:
        super().__init__(message)
        self.there = there


@dataclass(frozen=True)
class Contents:
    """What a student handed in for a lab, as bytes.

    `notebooks` go by their names, `files` beside them by their paths from there. `unread` is a
    sentence for each way in which something there was not read.
    """

    notebooks: Mapping[str, bytes]
    files: Mapping[str, bytes] = field(default_factory=dict)
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
    """One code cell that the grader runs, in the notebook's order.

    `given` cells are the release's own, put back as they were; `solution` cells answer the task
    `task`; `check` cells test it, hidden tests included; `own` cells are whatever else the student
    wrote. `index` is the cell's place in `Submission.notebook`, where its outputs go.
    """

    index: int
    source: str
    kind: Literal["given", "check", "solution", "own"]
    task: str | None = None


@dataclass(frozen=True)
class Submission:
    """A notebook as it will be graded.

    `raw` are the bytes that were handed in, `notebook` is nbformat 4's JSON with the released
    cells restored and all outputs cleared, `cells` what is to run, `notes` what was repaired,
    `release` which release of the lab it says it is of, `files` what lies in its working directory.
    """

    student: str
    lab: str
    raw: bytes
    notebook: dict[str, Any]
    cells: tuple[RunCell, ...]
    notes: tuple[str, ...] = ()
    release: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
