"""Finds what a course gives to grade, by name: labs with Tasks, and ordinary assignments.

Both are graded by the same commands, and all that follows a grade is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from autograder import content
from autograder.base.course import COURSE, Course
from autograder.base.spelling import did_you_mean
from autograder.grading.grade import Graded, grade
from autograder.grading.imports import heavy_imports, modules_of, needed, probe_sources
from autograder.grading.ordinary import grade_ordinary, tasks_of
from autograder.grading.unanswered import unanswered
from autograder.model.scoring import SANE, Rules
from autograder.model.submission import Contents, RunCell, Submission
from autograder.model.task import Lab, Task
from autograder.notebooks.assignment import Assignment, read_assignment
from autograder.notebooks.intake import read_handed, take_in_bytes
from autograder.notebooks.questions import source_notebook
from autograder.notebooks.released import read_release, release_of, solution_sources, task_of
from autograder.notebooks.supplementary_files import read_beside
from autograder.sandbox.host.sandbox import Sandbox
from peakmem.labs.session import HIDDEN_MODULES

__all__ = ["CourseLab", "OrdinaryLab", "TaskLab", "find_lab", "find_task", "lab_named", "lab_names"]

# Returns a sandbox that has these modules imported, beside those that the lab's own solution needs.
Start = Callable[[Sequence[str]], Sandbox]


class CourseLab(Protocol):
    """What grading needs of a lab.

    `notebooks` are the names of the files that a student hands in, without .ipynb. `hides` are
    modules that cannot be imported in the sandbox; `files` are shown beside the notebook there.
    `preload` are modules that all graders of it need, `imports` those that its notebooks import.
    `measured` tells whether it has a measured task, `ranks` whether one whose processes talk.
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
    @property
    def imports(self) -> tuple[str, ...]: ...
    @property
    def measured(self) -> bool: ...
    @property
    def ranks(self) -> bool: ...

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
    """A lab whose Tasks ask the student's process for values, and judge them outside of it.

    The Tasks are loaded on first use: some import torch.
    """

    name: str
    course: Course
    files = None
    measured = True  # every lab has a leak to find

    def __reduce__(self) -> tuple[Any, ...]:
        return TaskLab, (self.name, self.course)  # a worker reads the rest itself

    @cached_property
    def lab(self) -> Lab:
        return content.find_lab(self.name)

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self.lab.tasks

    @property
    def ranks(self) -> bool:
        return self.lab.ranks

    @property
    def notebooks(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def hides(self) -> tuple[str, ...]:
        return HIDDEN_MODULES[self.name]

    @property
    def preload(self) -> tuple[str, ...]:
        return (f"autograder.content.{self.name.partition('_')[0]}",)

    @cached_property
    def imports(self) -> tuple[str, ...]:
        probes = f"peakmem.probes.{self.name.partition('_')[0]}"
        return (probes, *modules_of(self._sources))

    @cached_property
    def _sources(self) -> tuple[str, ...]:
        """The code that runs of the notebook with the reference solutions, and of the probes."""
        own = [cell.source for cell in self._needed(self._reference)]
        return (*own, *probe_sources(self.name.partition("_")[0]))

    @property
    def _reference(self) -> list[RunCell]:
        """The cells that run of the notebook with the reference solutions."""
        return [
            RunCell(
                cell.index,
                self._solutions.get(task, cell.cell.source),
                "given" if cell.role == "given" else "solution",
            )
            for cell in read_release(self._release).cells
            if cell.cell.kind == "code" and cell.runs_as_released
            for task in [task_of(cell.cell.grade_id or "")]
        ]

    def _needed(self, cells: Sequence[RunCell]) -> list[RunCell]:
        asked = (cell.names for cell in read_release(self._release).cells)
        return needed(cells, frozenset().union(*asked))

    def _heavy_imports(self, submission: Submission) -> tuple[str, ...]:
        """What takes long to import, and this submission or the lab's own solution needs."""
        own = [cell.source for cell in self._needed(submission.cells)]
        return heavy_imports((*self.imports, *modules_of(own)), [*self._sources, *own])

    @cached_property
    def _release(self) -> dict[str, Any]:
        return release_of(self.name, self.course.releases)

    @cached_property
    def _solutions(self) -> dict[str, str]:
        """The sources of the reference solutions, by task; empty where the course has none here."""
        with suppress(FileNotFoundError):
            return solution_sources(source_notebook(self.name, self.course))
        return {}

    def prepare(self) -> None:
        """Read the released notebook, and the solutions."""
        _ = self._release, self._solutions  # which are read on first use

    def read(self, path: Path) -> Contents:
        return Contents(read_handed(path, self.notebooks))

    def grade(self, student: str, handed: Contents, start: Start, secret: bytes) -> Graded:
        raw = handed.notebooks[self.name]
        submission = take_in_bytes(student, self.name, raw, self._release)
        sandbox = start(self._heavy_imports(submission))  # it gets ready while tasks are loaded
        graded = grade(self.lab, submission, sandbox, secret, self._solutions)
        blank = unanswered(submission.notebook, self._release)
        verdicts = (*graded.result.verdicts, *blank)
        return replace(graded, result=replace(graded.result, verdicts=verdicts))


@dataclass(frozen=True)
class OrdinaryLab:
    """An ordinary nbgrader assignment, whose tests run in the student's process."""

    assignment: Assignment
    rules: Rules
    hides = ()
    preload = ()
    measured = False
    ranks = False

    def __reduce__(self) -> tuple[Any, ...]:
        return OrdinaryLab, (self.assignment, self.rules)

    @property
    def name(self) -> str:
        return self.assignment.name

    @cached_property
    def imports(self) -> tuple[str, ...]:
        cells = [c.cell.source for s in self.assignment.sheets for c in s.release.cells]
        return modules_of([*cells, *self._tests])

    @property
    def _tests(self) -> list[str]:
        return [q.source or "" for sheet in self.assignment.sheets for q in sheet.questions]

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
        code = [handed.packed().decode(errors="replace"), *self._tests]
        heavy = heavy_imports(["torch"] if any("torch" in text for text in code) else [], code)
        return grade_ordinary(
            self.assignment, self.rules, student, handed, lambda: start(heavy), secret
        )


def lab_names(course: Course = COURSE) -> list[str]:
    """Return the names of all that the course has to grade, in order."""
    return course.assignments() or content.lab_names()


def find_lab(name: str, course: Course = COURSE, rules: Rules = SANE) -> CourseLab:
    """Return the lab or the assignment of this name; ValueError, with those there are, else.

    `rules` are what an ordinary assignment is scored by.
    """
    if content.has_tasks(name):
        return TaskLab(name, course)
    if name in course.assignments():
        return OrdinaryLab(read_assignment(name, course), rules)
    raise _unknown(name, lab_names(course), course)


def lab_named(word: str, course: Course = COURSE) -> str:
    """Return the name of the lab that is named so, or alone begins so: `lab01` of `lab01_formats`.

    A lab whose source is not built yet counts too. ValueError, with the labs there are, if there
    is no such lab, or several.
    """
    known = sorted({*lab_names(course), *(path.stem for path in course.sources.glob("lab*.py"))})
    if word in known or content.has_tasks(word):
        return word
    begun = [name for name in known if word and name.startswith(word)]
    if len(begun) > 1:
        raise ValueError(f"{word!r} may be any of the labs {', '.join(begun)}; give more of it")
    if not begun:
        raise _unknown(word, known, course)
    return begun[0]


def _unknown(name: str, known: Sequence[str], course: Course) -> ValueError:
    return ValueError(
        f"there is no lab named {name!r} in {course}; the labs are {', '.join(known)}. "
        f"Those of another course: `autograder --course COURSE ...`.{did_you_mean(name, known)}"
    )


def find_task(name: str, course: Course = COURSE, rules: Rules = SANE) -> tuple[CourseLab, Task]:
    """Return the task of this name, and its lab; ValueError, with the names there are, else.

    A test of an ordinary assignment is named after it, `ps1/q1`.
    """
    lab_name, slash, task_id = name.partition("/")
    there = course.assignments()
    if there and lab_name not in there and not any(map(content.has_tasks, there)):
        raise ValueError(f"{name!r} names no test: put its assignment before it, {there[0]}/...")
    if not slash or content.has_tasks(lab_name):
        return find_lab(content.lab_of(name).name, course), content.find_task(name)
    lab = find_lab(lab_name, course, rules)
    for task in lab.tasks:
        if task.id == task_id:
            return lab, task
    known = [f"{lab_name}/{task.id}" for task in lab.tasks]
    near = did_you_mean(name, known)
    raise ValueError(f"{lab_name} has no test {task_id!r}; its tests are {', '.join(known)}.{near}")
