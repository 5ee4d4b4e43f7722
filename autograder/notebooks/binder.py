"""Joins the notebooks of an assignment into one, so that later steps handle one notebook.

nbgrader's names are unique only within a notebook. So in an assignment of several notebooks each
cell's name includes its notebook's, as in `problem2/q1`, and a heading precedes each notebook.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

__all__ = ["bind", "full_name", "is_bound", "unbind"]

Json = dict[str, Any]

_PART = "part"  # key in a heading's metadata: the name of the notebook that follows


def full_name(notebook: str, grade_id: str, *, alone: bool) -> str:
    """Return a cell's name within its assignment; `alone` if the assignment has one notebook."""
    return grade_id if alone else f"{notebook}/{grade_id}"


def bind(notebooks: Mapping[str, Json], *, alone: bool) -> Json:
    """Return several notebooks, as nbformat 4 JSON, as one.

    The only notebook of an assignment (`alone`) is returned unchanged.
    """
    first = next(iter(notebooks.values()))
    if alone:
        return first
    cells: list[Json] = []
    for name, notebook in notebooks.items():
        cells.append(_heading(name))
        for cell in deepcopy(notebook["cells"]):
            marks = cell["metadata"].get("nbgrader")
            if marks and "grade_id" in marks:
                marks["grade_id"] = full_name(name, marks["grade_id"], alone=False)
            cells.append(cell)
    return {**first, "cells": cells}


def is_bound(notebook: Mapping[str, Any]) -> bool:
    """Tell whether a notebook was joined from several."""
    cells = notebook["cells"]
    return bool(cells) and _PART in cells[0]["metadata"]


def unbind(bound: Json, names: tuple[str, ...]) -> dict[str, Json]:
    """Return the notebooks joined in `bound`, by name; missing ones are left out."""
    if len(names) == 1:
        return {names[0]: bound}
    parts: dict[str, Json] = {}
    cells: list[Json] = []
    for cell in deepcopy(bound["cells"]):
        name = cell["metadata"].get(_PART)
        if name is not None:
            cells = []
            parts[name] = {**bound, "cells": cells}
            continue
        marks = cell["metadata"].get("nbgrader")
        if marks and "grade_id" in marks:
            marks["grade_id"] = marks["grade_id"].rpartition("/")[2]
        cells.append(cell)
    return parts


def _heading(name: str) -> Json:
    metadata = {_PART: name, "nbgrader": {"grade_id": f"{name}/", "locked": True}}
    return {
        "cell_type": "markdown",
        "id": "",
        "metadata": metadata,
        "source": f"# {name}.ipynb",
    }
