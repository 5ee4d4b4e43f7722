"""What Formgrader shows of one submission: its graded notebooks, unable to run anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.base.cleaning import inert_markdown
from autograder.base.files import inside, write_whole
from autograder.model.result import Result
from autograder.notebooks.binder import unbind
from autograder.notebooks.graded import graded_notebook, marks_of
from autograder.notebooks.questions import COURSE, source_notebooks

__all__ = ["formgrader_pages", "formgrader_path", "notebook_bytes", "write_for_formgrader"]


def write_for_formgrader(result: Result, out: Path, root: Path = COURSE) -> None:
    """Write the notebooks that formgrader shows, below `out`, each in one step."""
    sources = source_notebooks(result.lab, root)
    whole = result.notebook
    parts = {} if whole is None else unbind(dict(whole), tuple(sources))
    for name, source in sources.items():
        part = replace(result, notebook=parts.get(name))
        write_whole(formgrader_path(result, out, name), _page(part, source))


def _page(result: Result, source: Mapping[str, Any]) -> bytes:
    released = {"".join(cell["source"]) for cell in source["cells"]}
    notebook = graded_notebook(result, source)
    schemes = {marks_of(cell).get("grade_id"): cell["source"] for cell in source["cells"]}
    for cell in notebook["cells"]:
        if marks_of(cell).get("task"):  # whoever gives its points goes by its mark scheme
            cell["source"] = schemes[marks_of(cell)["grade_id"]]
        # What students wrote in markdown would run in the instructor's session.
        if cell["cell_type"] == "markdown" and cell["source"] not in released:
            cell["source"] = inert_markdown(cell["source"])
    return notebook_bytes(notebook)


def formgrader_path(result: Result, out: Path, name: str) -> Path:
    """Return where the notebook `name` lies, as nbgrader has it."""
    return inside(out, "autograded", result.student, result.lab, f"{name}.ipynb")


def formgrader_pages(result: Result, out: Path) -> list[Path]:
    """Return all of a submission's notebooks that are there."""
    return sorted(inside(out, "autograded", result.student, result.lab).glob("*.ipynb"))


def notebook_bytes(notebook: dict[str, Any]) -> bytes:
    """Return a notebook as the bytes of its file."""
    return (json.dumps(notebook, ensure_ascii=False) + "\n").encode(errors="replace")
