"""Reads a lab's questions and their points from the instructor's built notebook.

Points come only from here; a student's notebook can't change them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder.base.course import COURSE, Course
from autograder.notebooks.binder import bind

__all__ = [
    "Question",
    "questions_in",
    "questions_of",
    "read_notebooks",
    "source_names",
    "source_notebook",
    "source_notebooks",
]

_MARKER = re.compile(r"(BEGIN|END) [A-Z]")  # around a region that isn't released
_HEADING = re.compile(r"^#{1,6}\s+(?P<title>.+?)\s*(\((?P<asks>[^()]*)\))?\s*$", re.MULTILINE)
_KIND = re.compile(r"(core|stretch),")  # starts the brackets in an exercise's heading


@dataclass(frozen=True)
class Question:
    """One cell of a lab that earns points."""

    #: nbgrader's grade_id, of a task or of a manual answer. In an assignment with several
    #: notebooks the notebook's name precedes it.
    id: str
    #: The heading above it, without the text in brackets.
    title: str
    #: Its maximum points.
    points: float
    #: Whether an instructor grades it manually.
    is_manual: bool
    #: Whether it is outside the lab's core: the heading's brackets start with `stretch`, as in
    #: `(stretch, 2 points, 15 minutes)`.
    is_stretch: bool = False


def read_notebooks(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the notebooks of a folder by name, in order, each as its file's JSON.

    A cell's text is one string, even if the file holds a list of lines. Raises ValueError if a file
    isn't a notebook of nbformat 4.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.ipynb")):
        try:
            notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is not a notebook: {error}") from error
        if "cells" not in notebook:
            raise ValueError(
                f"{path} has nbformat {notebook.get('nbformat')}; expected 4. Open it in "
                "JupyterLab and save it again."
            )
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])
        found[path.stem] = notebook
    return found


def source_notebooks(lab: str, course: Course = COURSE) -> dict[str, dict[str, Any]]:
    """Return the source notebooks of a lab or an assignment by name, as nbformat 4 JSON.

    Raises FileNotFoundError, with the remedy, if there is none.
    """
    folder = course.source(lab)
    found = read_notebooks(folder)
    if not found:
        raise FileNotFoundError(
            f"{folder / lab}.ipynb doesn't exist, so the points of {lab} are unknown; "
            f"build it with `autograder build {lab}`, or, if {lab} is another course's, name that "
            "course with --course"
        )
    return found


def source_names(lab: str, course: Course = COURSE) -> tuple[str, ...]:
    """Return the names of the source notebooks of a lab or an assignment, in order."""
    return tuple(path.stem for path in course.source_notebooks(lab))


def source_notebook(lab: str, course: Course = COURSE) -> dict[str, Any]:
    """Return the source of a lab or an assignment as one notebook of nbformat 4 JSON.

    Raises FileNotFoundError, with the remedy, if there is none.
    """
    notebooks = source_notebooks(lab, course)
    return bind(notebooks, alone=len(notebooks) == 1)


def questions_in(notebook: Mapping[str, Any]) -> tuple[Question, ...]:
    """Return the questions of a source notebook that earn points, in order."""
    found: list[Question] = []
    title, is_stretch = "", False
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        marks = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "markdown" and not marks.get("solution"):
            # Reads only a task's first line, because the text below may be just for its graders.
            text = source.strip().partition("\n")[0] if marks.get("task") else source
            headings = [h for h in _HEADING.finditer(text) if not _MARKER.match(h["title"])]
            title = headings[-1]["title"] if headings else title
            kinds = [kind[1] for h in headings if (kind := _KIND.match(h["asks"] or ""))]
            is_stretch = kinds[-1] == "stretch" if kinds else is_stretch
        if (marks.get("grade") or marks.get("task")) and float(marks["points"]) > 0:
            is_manual = bool(marks.get("solution") or marks.get("task"))
            name = title or marks["grade_id"]
            points = float(marks["points"])
            found.append(Question(marks["grade_id"], name, points, is_manual, is_stretch))
    counts = Counter(question.title for question in found)
    return tuple(
        replace(q, title=f"{q.title} ({q.id})") if counts[q.title] > 1 else q for q in found
    )


def questions_of(labs: Iterable[str], course: Course = COURSE) -> dict[str, tuple[Question, ...]]:
    """Return the questions of each of `labs`, by the lab's name."""
    return {lab: questions_in(source_notebook(lab, course)) for lab in sorted(set(labs))}
