"""Writes the notebooks that Formgrader shows for a submission, in which nothing can run."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from autograder.base.cleaning import inert_markdown
from autograder.base.course import COURSE, Course
from autograder.base.files import write_whole
from autograder.base.plain_text import plain_text
from autograder.model.result import Result
from autograder.model.status import SCORED, capitalized, shown
from autograder.model.task import Verdict
from autograder.notebooks.binder import full_name, unbind
from autograder.notebooks.graded import graded_notebook, marks_of
from autograder.notebooks.questions import source_notebooks
from autograder.publish.grades_csv import points, said
from autograder.store.out_folder import OutFolder

__all__ = ["notebook_bytes", "write_for_formgrader"]

_COLUMNS = 100  # characters of an output that Formgrader shows without scrolling


def write_for_formgrader(result: Result, out: OutFolder, course: Course = COURSE) -> None:
    """Write below `out` the notebooks that Formgrader shows, each in one step."""
    sources = source_notebooks(result.lab, course)
    whole = result.notebook
    parts = {} if whole is None else unbind(dict(whole), tuple(sources))
    for name, source in sources.items():
        part = replace(result, notebook=parts.get(name))
        told = {verdict.task: said(result, _told(verdict)) for verdict in result.verdicts}
        own = {
            grade_id: told[task]
            for grade_id in map(_grade_id, source["cells"])
            if (task := full_name(name, grade_id, alone=len(sources) == 1)) in told
        }
        write_whole(out.graded_notebook(result.key, name), _page(part, source, own))


def _told(verdict: Verdict) -> str:
    """A verdict as text: the status, the points, and the message to the student."""
    earned = ""
    if verdict.status in SCORED:
        most = f"of {points(verdict.max_points)}" if verdict.max_points else "bonus"
        earned = f", {points(verdict.points)} {most} points"
    mistake = f" (mistake: {verdict.mistake})" if verdict.mistake else ""
    return f"{capitalized(shown(verdict.status))}{earned}{mistake}. {verdict.message}"


def _page(result: Result, source: Mapping[str, Any], told: Mapping[str, str]) -> bytes:
    released = {"".join(cell["source"]) for cell in source["cells"]}
    notebook = graded_notebook(result, source)
    schemes = {marks_of(cell).get("grade_id"): cell["source"] for cell in source["cells"]}
    for cell in notebook["cells"]:
        if marks_of(cell).get("task"):  # its graders need the mark scheme
            cell["source"] = schemes[marks_of(cell)["grade_id"]]
        # Students' Markdown would otherwise run in the instructor's session.
        if cell["cell_type"] == "markdown" and cell["source"] not in released:
            cell["source"] = inert_markdown(cell["source"])
    _show(told, notebook["cells"])
    return notebook_bytes(notebook)


def _show(told: Mapping[str, str], cells: Sequence[dict[str, Any]]) -> None:
    """Put each verdict below the student's code: the solution, or else the cell with the points."""
    by_id = {_grade_id(cell): cell for cell in cells if cell["cell_type"] == "code"}
    for grade_id, text in told.items():
        cell = by_id.get(f"{grade_id}-solution") or by_id.get(grade_id)
        if cell is not None:  # a manual answer has no outputs, only a comment
            lines = _wrapped(f"Autograder: {plain_text(text)}")
            cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": lines})


def _wrapped(text: str) -> str:
    """The text in lines short enough for Formgrader, which doesn't wrap outputs."""
    lines = (
        textwrap.wrap(line, _COLUMNS, drop_whitespace=True, replace_whitespace=False)
        for line in text.splitlines()
    )
    return "".join(f"{line}\n" for some in lines for line in some or [""])


def _grade_id(cell: Mapping[str, Any]) -> str:
    return str(marks_of(cell).get("grade_id", ""))


def notebook_bytes(notebook: dict[str, Any]) -> bytes:
    """Return a notebook as the bytes of its file."""
    return (json.dumps(notebook, ensure_ascii=False) + "\n").encode(errors="replace")
