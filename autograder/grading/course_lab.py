"""Defines what grading needs from a lab of either kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from autograder.grading.grade import Graded
from autograder.model.submission import Contents
from autograder.model.task import Task
from autograder.sandbox.host.sandbox import Sandbox

__all__ = ["CourseLab", "Start"]

# Returns a sandbox with at least these slow modules imported.
Start = Callable[[Sequence[str]], Sandbox]


class CourseLab(Protocol):
    """The interface to a lab, as grading needs it."""

    @property
    def name(self) -> str:
        """The lab's name."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Its tasks, in the notebook's order."""

    @property
    def notebooks(self) -> tuple[str, ...]:
        """The names of the notebooks that a student submits, without .ipynb."""

    @property
    def hides(self) -> tuple[str, ...]:
        """Modules that can't be imported in the sandbox."""

    @property
    def files(self) -> Mapping[str, Path] | None:
        """Files shown beside the notebook in the sandbox, by relative path."""

    @property
    def preload(self) -> tuple[str, ...]:
        """Modules that all its graders need."""

    @property
    def imports(self) -> tuple[str, ...]:
        """Modules that its notebooks import."""

    @property
    def measured(self) -> bool:
        """Whether it has a measured task."""

    @property
    def ranks(self) -> bool:
        """Whether a task of it starts processes that talk to each other."""

    def prepare(self) -> None:
        """Read what grading needs. Raises FileNotFoundError, with its remedy, if it's missing."""

    def read(self, path: Path) -> Contents:
        """Return a student's submission; `path` comes from `find_submissions`.

        Raises Quarantine if the notebooks are missing or aren't plain files.
        """

    def grade(self, student: str, handed: Contents, start: Start, secret: bytes) -> Graded:
        """Grade a student's submission in the sandbox that `start` returns.

        Raises Quarantine if the notebooks can't be read as this lab's.
        """
