"""Submission: one student's notebook, read and put in order, ready to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Missing", "Quarantine", "RunCell", "Submission"]


class Quarantine(ValueError):
    """What was handed in cannot be read as this lab's notebook; the message says why."""


class Missing(Quarantine):
    """A file or folder of a submission is not there; `there` is what stands in its place."""

    def __init__(self, message: str, there: tuple[str, ...]) -> None:
        super().__init__(message)
        self.there = there


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
    `release` which release of the lab it says it is of.
    """

    student: str
    lab: str
    raw: bytes
    notebook: dict[str, Any]
    cells: tuple[RunCell, ...]
    notes: tuple[str, ...] = ()
    release: str = ""
