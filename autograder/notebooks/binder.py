"""Joins the notebooks of one assignment into one, so that everything after it sees one.

A cell in an assignment of several notebooks is named after its notebook too, `problem2/q1`, since
nbgrader's names are unique in a notebook only. A heading stands before each notebook's cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

__all__ = ["bind", "full_name", "is_bound", "unbind"]

Json = dict[str, Any]

_PART = "part"  # in a heading's metadata: the notebook whose cells follow


def full_name(notebook: str, grade_id: str, *, alone: bool) -> str:
    """Return the name of a cell in its assignment, whose only notebook this may be."""
    return grade_id if alone else f"{notebook}/{grade_id}"


def bind(notebooks: Mapping[str, Json], *, alone: bool) -> Json:
    """Return the notebooks, nbformat 4's JSON, as one.

    The notebook of an assignment that has but one, `alone`, stays as it is.
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
    """Tell whether this is several notebooks as one."""
    cells = notebook["cells"]
    return bool(cells) and _PART in cells[0]["metadata"]


def unbind(bound: Json, names: tuple[str, ...]) -> dict[str, Json]:
    """Return the notebooks that `bind` made one of, by name; those that are in it."""
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
