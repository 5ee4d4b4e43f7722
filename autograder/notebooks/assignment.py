"""Reads an ordinary nbgrader assignment from its source notebooks.

What students got, which cells are tests, what is hidden in them, what is graded manually: all of
it is read off the source by nbgrader's own preprocessors, with the settings of the course's
nbgrader_config.py, as `nbgrader generate_assignment` would.
"""

from __future__ import annotations

import copy
import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.base.course import Course
from autograder.notebooks.released import Release, read_release

if TYPE_CHECKING:
    from nbformat import NotebookNode

__all__ = ["Assignment", "Question", "Sheet", "read_assignment"]

_AUTOTEST = "AUTOTEST"


@dataclass(frozen=True)
class Question:
    """A cell that earns points.

    `id` is its grade_id. `source` is the test that runs, hidden parts included; or what stands in
    a cell that is graded manually, `by_person`, before anybody has written into it, None if it
    is no place to write in. `hidden` are the lines that students are not given.
    """

    id: str
    points: float
    by_person: bool
    source: str | None
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Sheet:
    """One notebook of an assignment. `name` is its file's, without .ipynb."""

    name: str
    release: Release
    questions: tuple[Question, ...]

    @property
    def hidden(self) -> frozenset[str]:
        """The lines of all hidden tests."""
        return frozenset().union(*(question.hidden for question in self.questions))


@dataclass(frozen=True)
class Assignment:
    """An assignment's notebooks in order, and the files beside them by their paths from there.

    `ignored` are patterns of files' names that are copied nowhere.
    """

    name: str
    sheets: tuple[Sheet, ...]
    files: Mapping[str, Path]
    ignored: tuple[str, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether it has one notebook only."""
        return len(self.sheets) == 1


def read_assignment(name: str, course: Course) -> Assignment:
    """Return the assignment `name` of a course.

    Raises ValueError, naming the notebook, for one that nbgrader would not release, that is not
    for Python, or whose tests nbgrader would make up (AUTOTEST).
    """
    sheets = tuple(_sheet(path, course) for path in course.source_notebooks(name))
    return Assignment(name, sheets, course.data_files(name), course.ignored)


def _sheet(path: Path, course: Course) -> Sheet:
    with _without_grammars():
        import nbformat  # the course's own labs are graded without it

    try:
        with warnings.catch_warnings(action="ignore"):  # of ids that nbformat makes up
            source = nbformat.read(path, as_version=4)
            _refuse_what_cannot_be_graded(source)
            tests, release = _generated(source, course)
    except Exception as error:  # nbgrader and nbformat raise many kinds
        raise ValueError(f"{path} cannot be graded: {_first_line(error)}") from error
    shown = {name: text for name, text, _ in _marked(release)}
    questions = tuple(_question(*cell, shown) for cell in _marked(tests))
    runs = {q.id: q.source or "" for q in questions if not q.by_person}
    as_json = json.loads(json.dumps(release))  # a worker should not need nbformat to be given it
    return Sheet(path.stem, read_release(as_json, runs), questions)


@contextmanager
def _without_grammars() -> Iterator[None]:
    """Keep what is imported here from an optional package that takes two seconds.

    nbformat imports jsonschema, which imports rfc3987_syntax if it is installed, to check strings
    that a schema says are IRIs. The schema of notebooks says so of none.
    """
    name = "rfc3987_syntax"
    held = name not in sys.modules
    if held:
        sys.modules[name] = None  # type: ignore[assignment]  # an ImportError where it is asked for
    try:
        yield
    finally:
        if held:
            del sys.modules[name]


def _refuse_what_cannot_be_graded(notebook: NotebookNode) -> None:
    from nbgrader.nbgraderformat import MetadataValidator

    MetadataValidator().validate_nb(notebook)
    metadata = notebook.metadata
    language = metadata.get("kernelspec", {}).get("language") or metadata.get(
        "language_info", {}
    ).get("name", "python")
    if language.lower() not in ("python", "python3", "ipython"):
        raise ValueError(f"it is in {language}; expected a notebook in Python")
    for cell in notebook.cells:
        for line in cell.source.splitlines():
            if cell.cell_type == "code" and line.strip().startswith("#") and _AUTOTEST in line:
                raise ValueError(
                    f"it has the line {line.strip()!r}; write the assertions out, for tests that "
                    "nbgrader makes up are not read"
                )


def _generated(source: NotebookNode, course: Course) -> tuple[NotebookNode, NotebookNode]:
    """The notebook without solutions but with all tests, and the one that students get."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.preprocessors import (
        ClearHiddenTests,
        IncludeHeaderFooter,
        InstantiateTests,
        SaveCells,
    )

    config = course.config
    converter = GenerateAssignment(coursedir=CourseDirectory(config=config), config=config)
    notebook = copy.deepcopy(source)
    resources: dict[str, Any] = {"nbgrader": {}, "metadata": {}}
    tests: NotebookNode | None = None
    for kind in converter.preprocessors:
        if kind in (InstantiateTests, SaveCells):  # one runs code, one writes into a database
            continue
        if kind is ClearHiddenTests:
            tests = copy.deepcopy(notebook)
        step = kind(parent=converter)
        if kind is IncludeHeaderFooter:  # their paths are relative to the course's folder
            step.header = step.header and str(course.root / step.header)
            step.footer = step.footer and str(course.root / step.footer)
        if step.enabled:
            notebook, resources = step.preprocess(notebook, resources)
    return (notebook if tests is None else tests), notebook


def _marked(notebook: NotebookNode) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The grade_id, the text and the marks of each cell that earns points."""
    for cell in notebook.cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("grade") or marks.get("task"):
            yield marks["grade_id"], cell.source, marks


def _question(name: str, text: str, marks: Mapping[str, Any], shown: Mapping[str, str]) -> Question:
    points = float(marks["points"])
    if marks.get("task"):
        return Question(name, points, True, None)
    if marks.get("solution"):
        return Question(name, points, True, text)
    hidden = _lines(text) - _lines(shown.get(name, ""))
    return Question(name, points, False, text, frozenset(hidden))


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines()} - {""}


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
