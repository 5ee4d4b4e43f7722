"""Reads an ordinary nbgrader assignment from its source notebooks.

nbgrader's own preprocessors, with the settings of the course's nbgrader_config.py, tell from the
source what students got, which cells are tests, what is hidden in them, and what is graded
manually, exactly as `nbgrader generate_assignment` would.
"""

from __future__ import annotations

import copy
import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.base.course import Course
from autograder.notebooks.released import Release, read_release

if TYPE_CHECKING:
    from nbformat import NotebookNode

__all__ = ["Assignment", "GradedCell", "Sheet", "read_assignment"]

_AUTOTEST = "AUTOTEST"


@dataclass(frozen=True)
class GradedCell:
    """A cell that earns points."""

    #: The cell's grade_id.
    id: str
    #: The most points it gives.
    points: float
    #: Whether an instructor grades it manually.
    is_manual: bool
    #: The test that runs, hidden parts included. For a manually graded cell, its released text;
    #: None if students can't write in it.
    source: str | None
    #: The lines that the release leaves out.
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Sheet:
    """One notebook of an assignment."""

    #: The file's name without .ipynb.
    name: str
    #: The notebook as released.
    release: Release
    #: Its questions, in order.
    questions: tuple[GradedCell, ...]

    @property
    def hidden(self) -> frozenset[str]:
        """The lines of all hidden tests."""
        return frozenset().union(*(question.hidden for question in self.questions))


@dataclass(frozen=True)
class Assignment:
    """An assignment as the instructor released it."""

    #: The assignment's name.
    name: str
    #: Its notebooks, in order.
    sheets: tuple[Sheet, ...]
    #: The data files beside the notebooks, by relative path.
    files: Mapping[str, Path]
    #: Patterns of file names that are never copied.
    ignored: tuple[str, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether it has a single notebook."""
        return len(self.sheets) == 1


def read_assignment(name: str, course: Course) -> Assignment:
    """Return a course's assignment by its name.

    Raises ValueError, naming the notebook, if nbgrader wouldn't release it, if it isn't for Python,
    or if nbgrader would generate its tests (AUTOTEST).
    """
    settings = course.config_file
    stamps = [path.stat() for path in (settings,) if path.is_file()]
    sheets = tuple(
        _sheet(path, course, *((s.st_mtime_ns, s.st_size) for s in (path.stat(), *stamps)))
        for path in course.source_notebooks(name)
    )
    return Assignment(name, sheets, course.data_files(name), course.ignored)


@lru_cache(maxsize=32)
def _sheet(path: Path, course: Course, *_versions: tuple[int, int]) -> Sheet:
    """Read a notebook. `_versions` change if the file or the settings do."""
    with _without_grammars():
        import nbformat  # late, because the course's own labs don't need it

    try:
        with warnings.catch_warnings(action="ignore"):  # nbformat warns about ids that it generates
            source = nbformat.read(path, as_version=4)
            _refuse_what_cannot_be_graded(source)
            tests, release = _generated(source, course)
    except Exception as error:  # nbgrader and nbformat raise many types
        raise ValueError(f"{path} cannot be graded: {_first_line(error)}") from error
    shown = {name: text for name, text, _ in _marked(release)}
    questions = tuple(_question(*cell, shown) for cell in _marked(tests))
    runs = {q.id: q.source or "" for q in questions if not q.is_manual}
    as_json = json.loads(json.dumps(release))  # so that a worker doesn't need nbformat
    return Sheet(path.stem, read_release(as_json, runs), questions)


@contextmanager
def _without_grammars() -> Iterator[None]:
    """Skip an optional package that takes two seconds to import.

    nbformat imports jsonschema, which imports rfc3987_syntax if installed, to check strings that a
    schema declares as IRIs. The notebook schema declares none.
    """
    name = "rfc3987_syntax"
    held = name not in sys.modules
    if held:
        sys.modules[name] = None  # type: ignore[assignment]  # makes its import raise ImportError
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
                    f"it has the line {line.strip()!r}; expected written-out assertions, since "
                    "tests that nbgrader generates aren't read"
                )


def _generated(source: NotebookNode, course: Course) -> tuple[NotebookNode, NotebookNode]:
    """The notebook without solutions but with all tests, and the released notebook."""
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
        if kind in (InstantiateTests, SaveCells):  # one runs code, the other writes to a database
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
    """The grade_id, the text and the nbgrader metadata of each cell that earns points."""
    for cell in notebook.cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("grade") or marks.get("task"):
            yield marks["grade_id"], cell.source, marks


def _question(
    name: str, text: str, marks: Mapping[str, Any], shown: Mapping[str, str]
) -> GradedCell:
    points = float(marks["points"])
    if marks.get("task"):
        return GradedCell(name, points, True, None)
    if marks.get("solution"):
        return GradedCell(name, points, True, text)
    hidden = _lines(text) - _lines(shown.get(name, ""))
    return GradedCell(name, points, False, text, frozenset(hidden))


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines()} - {""}


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
