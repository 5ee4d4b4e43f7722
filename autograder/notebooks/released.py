"""Reads a released notebook: its given and graded cells, and the names each exercise asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from autograder.notebooks.parse import Cell

__all__ = [
    "Release",
    "Released",
    "defined_names",
    "is_same",
    "plain",
    "read_release",
    "release_of",
    "solution_sources",
    "task_of",
]

# Definitions at the start of a line, found by pattern so that cells with syntax errors count.
_DEFINITION = re.compile(r"^(?:async[ \t]+def|def|class)[ \t]+(\w+)", re.MULTILINE)
_ASSIGNMENT = re.compile(r"^(\w+)[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE)

#: `given`: locked, restored as released. `check`: given and graded; in a lab, never run.
#: `solution`: the code of an exercise. `answer`: graded manually. `free`: given, but editable.
Role = Literal["given", "check", "solution", "answer", "free"]


@dataclass(frozen=True, eq=False)
class Released:
    """A cell of the release."""

    #: Its index in the released notebook.
    index: int
    #: The cell as nbformat 4 JSON.
    json: Mapping[str, Any]
    #: The cell, parsed.
    cell: Cell
    #: Its role.
    role: Role
    #: The names that a solution cell's stub defines.
    names: frozenset[str] = frozenset()
    #: The code that runs in place of a check, hidden tests included; None if it never runs.
    test: str | None = None

    @property
    def label(self) -> str:
        return self.cell.grade_id or self.cell.id or f"cell {self.index + 1}"

    @property
    def restored(self) -> bool:
        return self.role in ("given", "check")

    @property
    def runs_as_released(self) -> bool:
        return self.test is not None or (self.role != "check" and "demo" not in self.cell.tags)


@dataclass(frozen=True)
class Release:
    """A released notebook, ready to be compared with a submission."""

    #: Its cells, in order.
    cells: tuple[Released, ...]
    #: Its metadata.
    metadata: Mapping[str, Any]
    #: Whether a cell answers the exercise that its ids name, whatever it defines.
    trusts_ids: bool = False


def release_of(lab: str, labs: Path) -> dict[str, Any]:
    """Return the released notebook of `lab` in the folder `labs`, as nbformat 4 JSON.

    Raises FileNotFoundError, with the remedy, if it hasn't been built.
    """
    path = labs / lab / f"{lab}.ipynb"
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no released notebook {path}; build it with `autograder build {lab}`"
        )
    release: dict[str, Any] = json.loads(path.read_bytes())
    return release


def task_of(grade_id: str) -> str:
    """Return the task that a solution cell answers: `lab01-f` for `lab01-f-solution`."""
    return grade_id.removesuffix("-solution")


def solution_sources(notebook: Mapping[str, Any]) -> dict[str, str]:
    """Return the solution cells of an instructor's notebook (nbformat 4 JSON) by task."""
    found = {}
    for cell in notebook["cells"]:
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
        if cell["cell_type"] == "code" and task_of(grade_id) != grade_id:
            found[task_of(grade_id)] = "".join(cell["source"])
    return found


def read_release(notebook: Mapping[str, Any], tests: Mapping[str, str] | None = None) -> Release:
    """Return a released notebook, given as nbformat 4 JSON, with the role of each cell.

    `tests` maps each grade_id to the code that runs, for assignments whose tests run in the
    notebook.
    """
    cells = tuple(_released(i, cell, tests) for i, cell in enumerate(notebook["cells"]))
    return Release(cells, notebook.get("metadata", {}), trusts_ids=tests is not None)


def _released(index: int, cell: Mapping[str, Any], tests: Mapping[str, str] | None) -> Released:
    metadata = cell.get("metadata", {})
    nbgrader = metadata.get("nbgrader", {})
    source = "".join(cell["source"])
    kept = Cell(
        kind=cell["cell_type"],
        source=source,
        id=cell.get("id"),
        grade_id=nbgrader.get("grade_id"),
        tags=tuple(metadata.get("tags", ())) if tests is None else (),
        attachments=cell.get("attachments", {}),
    )
    if nbgrader.get("solution"):
        if kept.kind == "code" and not nbgrader.get("grade"):
            names = _DEFINITION.findall(source)
            if tests is None:
                names = names or _ASSIGNMENT.findall(source)
            return Released(index, cell, kept, "solution", frozenset(names))
        return Released(index, cell, kept, "answer")
    if nbgrader.get("grade"):
        return Released(index, cell, kept, "check", test=(tests or {}).get(kept.grade_id or ""))
    return Released(index, cell, kept, "given" if nbgrader.get("locked") else "free")


def defined_names(source: str) -> set[str]:
    r"""Return the functions, classes and variables that the code defines at its top level.

    >>> sorted(defined_names("limit = 3\n\ndef f(x):\n    y = x"))
    ['f', 'limit']
    """
    return {*_DEFINITION.findall(source), *_ASSIGNMENT.findall(source)}


def plain(source: str) -> str:
    """Return the source without trailing blanks, which editors change."""
    return "\n".join(line.rstrip() for line in source.strip().split("\n"))


def is_same(cell: Cell, released: Released) -> bool:
    """Tell whether the cell's source equals the released one, trailing blanks aside."""
    theirs, ours = cell.source, released.cell.source
    return theirs == ours or plain(theirs) == plain(ours)
