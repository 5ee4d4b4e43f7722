"""What a released notebook gives, what it grades, and what each exercise asks for."""

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

# Definitions that begin a line. Read by pattern, so that a cell with a syntax error is found too.
_DEFINITION = re.compile(r"^(?:async[ \t]+def|def|class)[ \t]+(\w+)", re.MULTILINE)
_ASSIGNMENT = re.compile(r"^(\w+)[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE)

# given: locked, put back as released. check: given and graded; a lab's never run. solution: the
# code of an exercise. answer: an exercise that is graded manually. free: given to be written over.
Role = Literal["given", "check", "solution", "answer", "free"]


@dataclass(frozen=True, eq=False)
class Released:
    """A cell of the release. `names` are what a solution cell's stub defines.

    `test` is what runs in a check's place, hidden tests included, or None if it never runs.
    """

    index: int
    json: Mapping[str, Any]
    cell: Cell
    role: Role
    names: frozenset[str] = frozenset()
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
    """A released notebook, ready to be compared with.

    `trusts_ids` where a cell answers the exercise that its ids name, whatever else it defines.
    """

    cells: tuple[Released, ...]
    metadata: Mapping[str, Any]
    trusts_ids: bool = False


def release_of(lab: str, labs: Path) -> dict[str, Any]:
    """Return the released notebook of `lab` in the folder `labs`, as nbformat 4's JSON.

    Raises FileNotFoundError, with the remedy, where it was not built.
    """
    path = labs / lab / f"{lab}.ipynb"
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no released notebook {path}; build it with `autograder build {lab}`"
        )
    release: dict[str, Any] = json.loads(path.read_bytes())
    return release


def task_of(grade_id: str) -> str:
    """Return the task that a solution cell answers: `lab01-f` of `lab01-f-solution`."""
    return grade_id.removesuffix("-solution")


def solution_sources(notebook: Mapping[str, Any]) -> dict[str, str]:
    """Return the solution cells of an instructor's notebook, nbformat 4's JSON, by task."""
    found = {}
    for cell in notebook["cells"]:
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
        if cell["cell_type"] == "code" and task_of(grade_id) != grade_id:
            found[task_of(grade_id)] = "".join(cell["source"])
    return found


def read_release(notebook: Mapping[str, Any], tests: Mapping[str, str] | None = None) -> Release:
    """Return what a released notebook, nbformat 4's JSON, says of each of its cells.

    `tests`, of an assignment whose tests run in its notebook, are what runs for each grade_id.
    """
    cells = tuple(_released(i, cell, tests) for i, cell in enumerate(notebook["cells"]))
    return Release(cells, notebook.get("metadata", {}), trusts_ids=tests is not None)


def _released(index: int, cell: Mapping[str, Any], tests: Mapping[str, str] | None) -> Released:
    metadata = cell.get("metadata", {})
    nbgrader = metadata.get("nbgrader", {})
    source = "".join(cell["source"])
    kept = Cell(
        cell["cell_type"],
        source,
        cell.get("id"),
        nbgrader.get("grade_id"),
        tuple(metadata.get("tags", ())) if tests is None else (),
        cell.get("attachments", {}),
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
    """Return the source without blanks at the ends of lines, which editors change."""
    return "\n".join(line.rstrip() for line in source.strip().split("\n"))


def is_same(cell: Cell, released: Released) -> bool:
    """Tell whether the cell's source is the released one, but for such blanks."""
    theirs, ours = cell.source, released.cell.source
    return theirs == ours or plain(theirs) == plain(ours)
