"""What formgrader shows of one submission: the graded notebook, with its text unable to run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from autograder.clean import inert_markdown
from autograder.files import inside, write_whole
from autograder.graded import graded_notebook
from autograder.questions import COURSE, source_notebook
from autograder.result import Result

__all__ = ["formgrader_path", "notebook_bytes", "write_for_formgrader"]


def write_for_formgrader(result: Result, out: Path, root: Path = COURSE) -> None:
    """Write the notebook that formgrader shows, below `out`, in one step."""
    source = source_notebook(result.lab, root)
    released = {"".join(cell["source"]) for cell in source["cells"]}
    notebook = graded_notebook(result, source)
    for cell in notebook["cells"]:
        # What students wrote in markdown would run in the instructor's session.
        if cell["cell_type"] == "markdown" and cell["source"] not in released:
            cell["source"] = inert_markdown(cell["source"])
    write_whole(formgrader_path(result, out), notebook_bytes(notebook))


def formgrader_path(result: Result, out: Path) -> Path:
    """Return where that notebook lies, as nbgrader has it."""
    return inside(out, "autograded", result.student, result.lab, f"{result.lab}.ipynb")


def notebook_bytes(notebook: dict[str, Any]) -> bytes:
    """Return a notebook as the bytes of its file."""
    return (json.dumps(notebook, ensure_ascii=False) + "\n").encode(errors="replace")
