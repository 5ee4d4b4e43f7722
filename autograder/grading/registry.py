"""Finds what a course gives to grade, by name: labs with Tasks, and ordinary assignments.

Both are graded by the same commands, and all that follows a grade is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from autograder import content
from autograder.base.course_layout import assignment_names
from autograder.grading.grade import Graded, grade
from autograder.grading.ordinary import grade_ordinary, tasks_of
from autograder.model.scoring import SANE, Rules
from autograder.model.submission import Contents
from autograder.model.task import Lab, Task
from autograder.notebooks.assignment import Assignment, read_assignment
from autograder.notebooks.intake import read_handed, take_in_bytes
from autograder.notebooks.questions import COURSE, source_notebook
from autograder.notebooks.released import release_of, solution_sources
from autograder.notebooks.supplementary_files import read_beside
from autograder.sandbox.host.sandbox import Sandbox

__all__ = ["CourseLab", "OrdinaryLab", "TaskLab", "find_lab", "find_task", "lab_names"]

Start = Callable[[], Sandbox]


class CourseLab(Protocol):
    """What grading needs of a lab.

    `notebooks` are the names of the files that a student hands in, without .ipynb. `hides` are
    modules that cannot be imported in the sandbox; `files` are shown beside the notebook there.
    `preload` are modules that all graders of it need.
    """

    @property
    def name(self) -> str: ...
    @property
    def tasks(self) -> tuple[Task, ...]: ...
    @property
    def notebooks(self) -> tuple[str, ...]: ...
    @property
    def hides(self) -> tuple[str, ...]: ...
    @property
    def files(self) -> Mapping[str, Path] | None: ...
    @property
    def preload(self) -> tuple[str, ...]: ...

    def prepare(self) -> None:
        """Read all that grading needs; FileNotFoundError, with the remedy, for what is missing."""

    def read(self, path: Path) -> Contents:
        """Return what a student handed in; `path` is one that `find_submissions` listed.

        Raises Quarantine where the notebooks are not there, or are not plain files.
        """
        ...

    def grade(self, student: str, handed: Contents, start: Start, secret: bytes) -> Graded:
        """Grade what a student handed in, in the sandbox that `start` returns.

        Raises Quarantine where the notebooks cannot be read as this lab's.
        """
        ...


@dataclass(frozen=True)
class TaskLab:
    """A lab whose Tasks ask the student's process for values, and judge them outside of it."""

    lab: Lab
    root: Path
    files = None

    @property
    def name(self) -> str:
        return self.lab.name

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self.lab.tasks

    @property
    def notebooks(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def hides(self) -> tuple[str, ...]:
        return self.lab.hides

    @property
    def preload(self) -> tuple[str, ...]:
        return (f"autograder.content.{self.lab.number}",)

    @cached_property
    def _release(self) -> dict[str, Any]:
        return release_of(self.name, self.root / "labs")

    @cached_property
    def _solutions(self) -> dict[str, str]:
        """The sources of the reference solutions, by task; empty where the course has none here."""
        with suppress(FileNotFoundError):
            return solution_sources(source_notebook(self.name, self.root))
        return {}

    def prepare(self) -> None:
        """Read the released notebook, and the solutions."""
        _ = self._release, self._solutions  # which are read on first use

    def read(self, path: Path) -> Contents:
        return Contents(read_handed(path, self.notebooks))

    def grade(self, student: str, handed: Contents, start: Start, secret: bytes) -> Graded:
        raw = handed.notebooks[self.name]
        submission = take_in_bytes(student, self.name, raw, self._release)
        return grade(self.lab, submission, start(), secret, self._solutions)


@dataclass(frozen=True)
class OrdinaryLab:
    """An ordinary nbgrader assignment, whose tests run in the student's process."""

    assignment: Assignment
    rules: Rules
    hides = ()
    preload = ("nbgrader.preprocessors",)

    @property
    def name(self) -> str:
        return self.assignment.name

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        return tasks_of(self.assignment, self.rules)

    @property
    def notebooks(self) -> tuple[str, ...]:
        return tuple(sheet.name for sheet in self.assignment.sheets)

    @property
    def files(self) -> Mapping[str, Path]:
        return self.assignment.files

    def prepare(self) -> None:
        """All is read already."""

    def read(self, path: Path) -> Contents:
        notebooks = read_handed(path, self.notebooks)
        files, unread = read_beside(path, self.files, self.assignment.ignored)
        return Contents(notebooks, files, unread)

    def grade(self, student: str, handed: Contents, start: Start, secret: bytes) -> Graded:
        return grade_ordinary(self.assignment, self.rules, student, handed, start, secret)


def lab_names(root: Path = COURSE) -> list[str]:
    """Return the names of all that the course in `root` has to grade, in order."""
    return assignment_names(root) or content.lab_names()


def find_lab(name: str, root: Path = COURSE, rules: Rules = SANE) -> CourseLab:
    """Return the lab or the assignment of this name; ValueError, with those there are, else.

    `rules` are what an ordinary assignment is scored by.
    """
    if content.has_tasks(name):
        return TaskLab(content.find_lab(name), root)
    if name in assignment_names(root):
        return OrdinaryLab(read_assignment(name, root), rules)
    raise ValueError(
        f"there is no lab named {name!r} in {root}; the labs are {', '.join(lab_names(root))}. "
        "Those of another course: `autograder --course COURSE ...`"
    )


def find_task(name: str, root: Path = COURSE, rules: Rules = SANE) -> tuple[CourseLab, Task]:
    """Return the task of this name, and its lab; ValueError, with the names there are, else.

    A test of an ordinary assignment is named after it, `ps1/q1`.
    """
    lab_name, slash, task_id = name.partition("/")
    there = assignment_names(root)
    if there and lab_name not in there and not any(map(content.has_tasks, there)):
        raise ValueError(f"{name!r} names no test: put its assignment before it, {there[0]}/...")
    if not slash or content.has_tasks(lab_name):
        return find_lab(content.lab_of(name).name, root), content.find_task(name)
    lab = find_lab(lab_name, root, rules)
    for task in lab.tasks:
        if task.id == task_id:
            return lab, task
    known = ", ".join(f"{lab_name}/{task.id}" for task in lab.tasks)
    raise ValueError(f"{lab_name} has no test {task_id!r}; its tests are {known}")
