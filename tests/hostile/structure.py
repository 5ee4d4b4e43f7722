"""Notebooks whose cells or metadata were edited, and files that are no notebooks at all."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

from tests.grading import LAB05, SEARCH, Notebook, cell_of, code_cell, released, solved

__all__ = ["FILES", "STRUCTURES", "Structure"]

_SOLUTION = f"{SEARCH}-solution"


@dataclass(frozen=True)
class Structure:
    """A notebook that was edited, and what its author gets for the first exercise."""

    name: str
    edit: Callable[[Notebook], None]
    points: int
    of: Callable[[], Notebook] = solved


def _all_grade_ids_alike(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["grade_id"] = SEARCH


def _no_metadata(notebook: Notebook) -> None:
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"] = {}
        cell["id"] = f"x{number}"


def _duplicated(notebook: Notebook) -> None:
    grade = cell_of(notebook, SEARCH)
    notebook["cells"] += [deepcopy(grade) for _ in range(3)]


def _deleted(notebook: Notebook) -> None:
    notebook["cells"] = [c for c in notebook["cells"] if not c["id"].startswith(SEARCH)]


def _grade_cell_deleted(notebook: Notebook) -> None:
    notebook["cells"].remove(cell_of(notebook, SEARCH))


def _split(notebook: Notebook) -> None:
    solution = cell_of(notebook, _SOLUTION)
    where = notebook["cells"].index(solution)
    twin = deepcopy(solution)
    solution["source"] = "def helper(run, upper): return upper"
    notebook["cells"].insert(where + 1, twin)


def _reordered(notebook: Notebook) -> None:
    notebook["cells"].reverse()


def _retyped(notebook: Notebook) -> None:
    cell_of(notebook, SEARCH)["cell_type"] = "markdown"
    cell_of(notebook, f"{SEARCH}-check")["cell_type"] = "raw"


def _grade_cell_rewritten(notebook: Notebook) -> None:
    cell_of(notebook, SEARCH)["source"] = "4.0"
    cell_of(notebook, SEARCH)["metadata"]["nbgrader"] |= {"points": 100, "grade": False}


def _defined_again_last(notebook: Notebook) -> None:
    cell = code_cell("def largest_micro_batch(run, upper): return 1")
    notebook["cells"].append(cell | {"id": "again"})


def _forged_identity(notebook: Notebook) -> None:
    notebook["metadata"] |= {
        "student": "honest-a",
        "timestamp": "1999-01-01T00:00:00",
        "nbgrader": {"student_id": "honest-a", "timestamp": "1999-01-01T00:00:00"},
    }
    for cell in notebook["cells"]:
        cell["metadata"].get("nbgrader", {}).update({"student": "honest-a", "score": 4})


STRUCTURES = [
    Structure("no-metadata", _no_metadata, 4),
    Structure("all-grade-ids-alike", _all_grade_ids_alike, 4),
    Structure("duplicated-grade-cells", _duplicated, 4),
    Structure("deleted", _deleted, 0),
    Structure("deleted-grade-cell", _grade_cell_deleted, 4),
    Structure("split-solution", _split, 4),
    Structure("reordered", _reordered, 4),
    Structure("retyped-grade-cells", _retyped, 4),
    Structure("rewritten-grade-cell", _grade_cell_rewritten, 0, released),
    Structure("forged-identity", _forged_identity, 0, released),
    Structure("defined-again-last", _defined_again_last, 0),
]


def _zip_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"../../{LAB05}.ipynb", b" " * (100 << 20))
        archive.writestr("/etc/cron.d/x", b"")
    return out.getvalue()


def _too_many_lists() -> bytes:
    return b'{"nbformat": 4, "cells": [' + b"[]," * 1_000_000 + b"[]]}"


def _too_deep() -> bytes:
    return b'{"nbformat": 4, "cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def _too_large() -> bytes:
    return b" " * (40 << 20)


def _too_many_cells() -> bytes:
    notebook = released()
    notebook["cells"] *= 200
    return json.dumps(notebook).encode()


# What stands where a notebook should; the reason that a person reads.
FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "zip-bomb": (_zip_bomb, "a zip archive"),
    "too-many-lists": (_too_many_lists, "structure is far larger"),
    "too-deep": (_too_deep, "nested deeper"),
    "too-large": (_too_large, "over 32 MiB"),
    "too-many-cells": (_too_many_cells, "cells; at most"),
    "empty": (lambda: b"", "is empty"),
    "gradebook": (lambda: b"SQLite format 3\0" + bytes(99), "no notebook"),
}
