"""What a lab gives points for, read off the instructor's built notebook.

The points come from here and from nowhere else: what a student's notebook says of itself decides
nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder.base.course_layout import read_notebooks, source_folder
from autograder.base.files import inside
from autograder.notebooks.binder import bind

__all__ = [
    "COURSE",
    "Question",
    "questions_in",
    "questions_of",
    "source_names",
    "source_notebook",
    "source_notebooks",
]

COURSE = Path(__file__).resolve().parents[2]

_MARKER = re.compile(r"(BEGIN|END) [A-Z]")  # of a region that students are not given
_HEADING = re.compile(r"^#{1,6}\s+(?P<title>.+?)\s*(\([^()]*\))?\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Question:
    """One cell of a lab that earns points.

    `id` is nbgrader's grade_id: a task's, or that of an answer in words, which is `by_person`.
    In an assignment of several notebooks the notebook's name stands before it. `title` is the
    heading above it, without what stands in brackets.
    """

    id: str
    title: str
    points: float
    by_person: bool


def source_notebooks(lab: str, root: Path = COURSE) -> dict[str, dict[str, Any]]:
    """Return the source notebooks of a lab or an assignment by name, as nbformat 4's JSON.

    Raises FileNotFoundError, with the remedy, where there is none.
    """
    folder = inside(source_folder(root), lab)
    found = read_notebooks(folder)
    if not found:
        raise FileNotFoundError(
            f"{folder / lab}.ipynb is not there, so nobody knows the points of {lab}; "
            f"build it with: autograder build {lab}"
        )
    return found


def source_names(lab: str, root: Path = COURSE) -> tuple[str, ...]:
    """Return the names of the source notebooks of a lab or an assignment, in order."""
    return tuple(path.stem for path in sorted(inside(source_folder(root), lab).glob("*.ipynb")))


def source_notebook(lab: str, root: Path = COURSE) -> dict[str, Any]:
    """Return the source of a lab or an assignment as one notebook, as nbformat 4's JSON.

    Raises FileNotFoundError, with the remedy, where there is none.
    """
    notebooks = source_notebooks(lab, root)
    return bind(notebooks, alone=len(notebooks) == 1)


def questions_in(notebook: Mapping[str, Any]) -> tuple[Question, ...]:
    """Return the questions of a source notebook that earn points, in its order."""
    found: list[Question] = []
    title = ""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        marks = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "markdown" and not marks.get("solution"):
            # Below its first line a task's text may be for those who give its points only.
            text = source.strip().partition("\n")[0] if marks.get("task") else source
            titles = [heading["title"] for heading in _HEADING.finditer(text)]
            title = next((t for t in reversed(titles) if not _MARKER.match(t)), title)
        if (marks.get("grade") or marks.get("task")) and float(marks["points"]) > 0:
            by_person = bool(marks.get("solution") or marks.get("task"))
            name = title or marks["grade_id"]
            found.append(Question(marks["grade_id"], name, float(marks["points"]), by_person))
    counts = Counter(question.title for question in found)
    return tuple(
        replace(q, title=f"{q.title} ({q.id})") if counts[q.title] > 1 else q for q in found
    )


def questions_of(labs: Iterable[str], root: Path = COURSE) -> dict[str, tuple[Question, ...]]:
    """Return the questions of each of `labs`, by the lab's name."""
    return {lab: questions_in(source_notebook(lab, root)) for lab in sorted(set(labs))}
