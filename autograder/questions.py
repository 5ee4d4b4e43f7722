"""Question: what a lab gives points for, read off the instructor's built notebook.

The points come from here and from nowhere else: what a student's notebook says of itself decides
nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["COURSE", "Question", "questions_in", "questions_of", "source_notebook"]

COURSE = Path(__file__).resolve().parents[1]

_HEADING = re.compile(r"^#{1,6}\s+(?P<title>.+?)\s*(\([^()]*\))?\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Question:
    """One cell of a lab that earns points.

    `id` is nbgrader's grade_id: a task's, or that of an answer in words, which is `by_person`.
    `title` is the heading above it, without what stands in brackets.
    """

    id: str
    title: str
    points: float
    by_person: bool


def source_notebook(lab: str, root: Path = COURSE) -> dict[str, Any]:
    """Return the built notebook `solutions/<lab>/<lab>.ipynb` below `root`, as nbformat 4's JSON.

    Raises FileNotFoundError, with the remedy, where it has not been built.
    """
    path = root / "solutions" / lab / f"{lab}.ipynb"
    try:
        notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} is not there, so nobody knows the points of {lab}; "
            f"build it with: autograder build {lab}"
        ) from None
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])  # files hold a list of lines
    return notebook


def questions_in(notebook: Mapping[str, Any]) -> tuple[Question, ...]:
    """Return the questions of a source notebook that earn points, in its order."""
    found: list[Question] = []
    title = ""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        marks = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "markdown" and not marks.get("solution"):
            headings = list(_HEADING.finditer(source))
            title = headings[-1]["title"] if headings else title
        if marks.get("grade") and marks["points"] > 0:
            by_person = bool(marks["solution"])
            name = title or marks["grade_id"]
            found.append(Question(marks["grade_id"], name, float(marks["points"]), by_person))
    return tuple(found)


def questions_of(labs: Iterable[str], root: Path = COURSE) -> dict[str, tuple[Question, ...]]:
    """Return the questions of each of `labs`, by the lab's name."""
    return {lab: questions_in(source_notebook(lab, root)) for lab in sorted(set(labs))}
