"""Shows a student's cells with the instructor's points, made safe.

Each cell is rebuilt. Its text and its sanitised outputs come from the student; nbgrader's metadata,
with the points, comes from the source notebook. So no student's metadata reaches a gradebook.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from autograder.base.cleaning import safe_image, safe_output
from autograder.base.plain_text import plain_text, text_of, visible
from autograder.model.result import Result
from autograder.notebooks.questions import questions_in

__all__ = ["graded_notebook", "marks_of", "solution_source"]

Json = dict[str, Any]


def marks_of(cell: Mapping[str, Any]) -> Json:
    """Return a cell's nbgrader metadata; empty if it has none."""
    metadata = cell.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, Mapping) else None
    return dict(marks) if isinstance(marks, Mapping) else {}


def graded_notebook(result: Result, source: Mapping[str, Any]) -> Json:
    """Return the notebook of `result` as nbformat 4 JSON, with the nbgrader metadata of `source`.

    If several cells have the same grade_id, the first gets the metadata. A question without a cell
    (because it was deleted, or the submission was never graded) gets an empty cell at the end, so
    that an instructor can still give points for it.
    """
    marks = {m["grade_id"]: (m, cell) for cell in source["cells"] if (m := marks_of(cell))}
    cells: list[Json] = []
    given = result.notebook.get("cells") if result.notebook is not None else None
    for old in given if isinstance(given, list) else []:
        if isinstance(old, Mapping):
            mark, _ = marks.pop(str(marks_of(old).get("grade_id")), (None, None))
            cells.append(_rebuilt(old, mark))
    if result.end != "graded":
        cells.append(_cell("markdown", f"**{result.end.capitalize()}.** {_escaped(result.reason)}"))
    for question in questions_in(source):
        if question.id in marks:
            mark, cell = marks[question.id]
            missing = "There is no such cell in the submission."
            text = f"# {missing}" if cell["cell_type"] == "code" else missing
            cells.append(_cell(cell["cell_type"], text, mark))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"kernelspec": deepcopy(source["metadata"].get("kernelspec", {}))}
    return {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def _rebuilt(old: Mapping[str, Any], mark: Json | None) -> Json:
    text = visible(text_of(old.get("source")))
    if old.get("cell_type") == "markdown":
        cell = _cell("markdown", text, mark)
        attachments = _attachments(old.get("attachments"))
        if attachments:
            cell["attachments"] = attachments
        return cell
    # nbconvert would render a raw cell as HTML; a code cell is only text.
    cell = _cell("code", text, mark)
    outputs = old.get("outputs")
    if isinstance(outputs, list):
        cell["outputs"] = [safe_output(o) for o in outputs if isinstance(o, Mapping)]
    return cell


def _cell(kind: str, text: str, mark: Json | None = None) -> Json:
    metadata = {"nbgrader": dict(mark)} if mark else {}
    cell: Json = {"cell_type": kind, "id": "", "metadata": metadata, "source": text}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell


def _attachments(value: object) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for name, kinds in value.items() if isinstance(value, Mapping) else ():
        for kind, data in kinds.items() if isinstance(kinds, Mapping) else ():
            image = safe_image(str(kind), data)
            if image is not None:
                found.setdefault(visible(str(name)), {})[str(kind)] = image
    return found


def _escaped(reason: str) -> str:
    """The reason as Markdown that renders as plain text, because it may quote a student."""
    text = " ".join(plain_text(reason).split())
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+-.!|~$" else c for c in text).translate(
        {ord("<"): "&lt;", ord("&"): "&amp;"}
    )


def solution_source(notebook: Mapping[str, Any] | None, task: str) -> str:
    """Return a solution cell's code, for a reader; empty if there is no such cell."""
    for cell in notebook["cells"] if notebook else ():
        if str(marks_of(cell).get("grade_id")) == f"{task}-solution":
            return visible("".join(cell["source"]))
    return ""
