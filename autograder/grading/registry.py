"""Finds a course's labs by name: labs with Tasks, and ordinary assignments.

The same commands grade both, and everything after grading treats them alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from autograder import content
from autograder.base.course import COURSE, Course
from autograder.base.spelling import begun_by, did_you_mean
from autograder.grading.course_lab import CourseLab, Start
from autograder.grading.grade import Graded, grade
from autograder.grading.imports import heavy_imports, modules_of, needed, probe_sources
from autograder.grading.ordinary import grade_ordinary, tasks_of
from autograder.grading.unanswered import unanswered
from autograder.model.scoring import SANE, Rules
from autograder.model.submission import Contents, RunCell, Submission
from autograder.model.task import Lab, Task
from autograder.notebooks.assignment import Assignment, read_assignment
from autograder.notebooks.intake import read_handed, take_in
from autograder.notebooks.questions import source_notebook
from autograder.notebooks.released import read_release, release_of, solution_sources, task_of
from autograder.notebooks.supplementary_files import read_beside
from peakmem.core.collector import no_collection
from peakmem.labs.session import HIDDEN_MODULES

__all__ = ["TaskLab", "find_lab", "find_task", "lab_named", "lab_names"]


@dataclass(frozen=True)
class TaskLab:
    """A lab whose Tasks ask the student's process for values and judge them outside it.

    The Tasks are loaded on first use, because some import torch.
    """

    #: The lab's full name, such as `lab01_formats`.
    name: str
    #: The course that the lab belongs to.
    course: Course
    files = None
    measured = True  # every lab has a leak to find

    def __reduce__(self) -> tuple[Any, ...]:
        return TaskLab, (self.name, self.course)  # a worker reads the rest again itself

    @cached_property
    def lab(self) -> Lab:
        with no_collection():
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
        """The code that runs: the solved notebook's and the probes'."""
        own = [cell.source for cell in self._needed(self._reference)]
        return (*own, *probe_sources(self.name.partition("_")[0]))

    @property
    def _reference(self) -> list[RunCell]:
        """The code cells that run of the notebook with the reference solutions."""
        return [
            RunCell(
                index=cell.index,
                source=self._solutions.get(task, cell.cell.source),
                kind="given" if cell.role == "given" else "solution",
            )
            for cell in read_release(self._release).cells
            if cell.cell.kind == "code" and cell.runs_as_released
            for task in [task_of(cell.cell.grade_id or "")]
        ]

    def _needed(self, cells: Sequence[RunCell]) -> list[RunCell]:
        asked = (cell.names for cell in read_release(self._release).cells)
        return needed(cells, frozenset().union(*asked))

    def heavy_imports(self, submission: Submission) -> tuple[str, ...]:
        """Return the slow imports that this submission or the reference solution needs."""
        own = [cell.source for cell in self._needed(submission.cells)]
        return heavy_imports((*self.imports, *modules_of(own)), [*self._sources, *own])

    @cached_property
    def _release(self) -> dict[str, Any]:
        return release_of(self.name, self.course.releases)

    @cached_property
    def _solutions(self) -> dict[str, str]:
        """The reference solutions' sources by task; empty if the course has none here."""
        with suppress(FileNotFoundError):
            return solution_sources(source_notebook(self.name, self.course))
        return {}

    def prepare(self) -> None:
        """Read the released notebook, and the solutions."""
        _ = self._release, self._solutions  # reads both

    def read(self, path: Path) -> Contents:
        return Contents(read_handed(path, self.notebooks))

    def grade(self, student: str, handed: Contents, start: Start, secret: bytes) -> Graded:
        raw = handed.notebooks[self.name]
        submission = take_in(student, self.name, raw, self._release)
        sandbox = start(self.heavy_imports(submission))  # it starts while the tasks are loaded
        graded = grade(self.lab, submission, sandbox, secret, self._solutions)
        blank = unanswered(submission.notebook, self._release)
        verdicts = (*graded.result.verdicts, *blank)
        return replace(graded, result=replace(graded.result, verdicts=verdicts))


@dataclass(frozen=True)
class OrdinaryLab:
    """An ordinary nbgrader assignment, whose tests run in the student's process."""

    #: The instructor's version: its notebooks and their tests.
    assignment: Assignment
    #: The course's rules for grading such assignments.
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
        """Do nothing: everything has been read already."""

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
    """Return the names of all labs and assignments of the course, in order."""
    return course.assignments() or content.lab_names()


def find_lab(name: str, course: Course = COURSE, rules: Rules = SANE) -> CourseLab:
    """Return the lab or the assignment of this name; `rules` score an ordinary assignment.

    Raises ValueError, listing the course's labs, if there is none.
    """
    if content.has_tasks(name):
        return TaskLab(name, course)
    if name in course.assignments():
        return OrdinaryLab(read_assignment(name, course), rules)
    raise _unknown(name, lab_names(course), course)


def lab_named(word: str, course: Course = COURSE) -> str:
    """Return the full name of a lab, given that name or a unique start: `lab01`.

    Labs whose source isn't built yet count too. Raises ValueError, listing the course's labs, if
    none or several match.
    """
    known = sorted({*lab_names(course), *(path.stem for path in course.sources.glob("lab*.py"))})
    if word in known or content.has_tasks(word):
        return word
    begun = begun_by(word, known)
    if len(begun) > 1:
        raise ValueError(f"{word!r} matches the labs {', '.join(begun)}; type more of the name")
    if not begun:
        raise _unknown(word, known, course)
    return begun[0]


def _unknown(name: str, known: Sequence[str], course: Course) -> ValueError:
    return ValueError(
        f"there is no lab named {name!r} in {course}; the labs are {', '.join(known)}. "
        f"For another course: `autograder --course COURSE ...`.{did_you_mean(name, known)}"
    )


def find_task(name: str, course: Course = COURSE, rules: Rules = SANE) -> tuple[CourseLab, Task]:
    """Return the task of this name, and its lab.

    A test of an ordinary assignment is named with its assignment: `ps1/q1`. Raises ValueError,
    listing the names that exist, if there is none.
    """
    lab_name, slash, task_id = name.partition("/")
    there = course.assignments()
    if there and lab_name not in there and not any(map(content.has_tasks, there)):
        raise ValueError(
            f"{name!r} isn't a test's name; put its assignment before it: {there[0]}/..."
        )
    if not slash or content.has_tasks(lab_name):
        return find_lab(content.lab_of(name).name, course), content.find_task(name)
    lab = find_lab(lab_name, course, rules)
    for task in lab.tasks:
        if task.id == task_id:
            return lab, task
    known = [f"{lab_name}/{task.id}" for task in lab.tasks]
    near = did_you_mean(name, known)
    raise ValueError(f"{lab_name} has no test {task_id!r}; its tests are {', '.join(known)}.{near}")
