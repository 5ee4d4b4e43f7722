"""Matches each of a student's cells to the released cell that it copies or answers."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Sequence

from autograder.model.note import Note
from autograder.model.submission import Quarantine
from autograder.notebooks.parse import Cell
from autograder.notebooks.released import Release, Released, defined_names, is_same, plain

__all__ = ["match", "refuse_strangers"]

_LAB_ID = re.compile(r"lab\d\d-")


def match(release: Release, cells: Sequence[Cell], notes: list[Note]) -> list[Released | None]:
    """Return, for each of the student's cells, the released cell that it copies or answers."""
    by_grade_id = {r.cell.grade_id: r for r in release.cells if r.cell.grade_id}
    by_id = {r.cell.id: r for r in release.cells if r.cell.id}
    found = [by_grade_id.get(c.grade_id or "") or by_id.get(c.id or "") for c in cells]
    missing: dict[str, list[Released]] = {}
    for released in release.cells:
        if released not in found and released.cell.source.strip():
            missing.setdefault(plain(released.cell.source), []).append(released)
    for i, cell in enumerate(cells):
        if found[i] is None and (same := missing.get(plain(cell.source))):
            found[i] = same.pop(0)
    by_names = _find_by_names(release, cells, found)
    if by_names:
        notes.append(
            Note("repair", f"Found by the names that the code defines: {', '.join(by_names)}.")
        )
    return found


def _find_by_names(
    release: Release, cells: Sequence[Cell], found: list[Released | None]
) -> list[str]:
    """Update `found` by the names that cells define; return the labels of the exercises found."""
    solutions = [
        r for r in release.cells if r.role == "solution" and not (release.trusts_ids and r in found)
    ]
    labels: dict[str, None] = {}
    for i, cell in enumerate(cells):
        known = found[i]
        if cell.kind != "code" or (known and known.restored and is_same(cell, known)):
            continue
        if known and release.trusts_ids:
            continue
        answered = _answered(solutions, cell)
        if answered and known not in answered:
            found[i] = answered[0]
            labels.setdefault(answered[0].label)
    coded = [r for cell, r in zip(cells, found, strict=True) if cell.kind == "code"]
    for i, cell in enumerate(cells):
        known = found[i]
        if cell.kind == "code" or (known and known.role != "solution"):
            continue
        # A code cell turned into text: by mistake, or because another cell answers.
        answered = _answered(solutions, cell) if known is None else []
        if answered and _is_code(cell.source):
            known = answered[0]
        found[i] = known if known not in coded else None
    return list(labels)


def _answered(solutions: Iterable[Released], cell: Cell) -> list[Released]:
    defined = defined_names(cell.source)
    return [r for r in solutions if not r.names.isdisjoint(defined)]


def _is_code(source: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(source)
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def refuse_strangers(
    release: Release, cells: Sequence[Cell], found: Sequence[Released | None]
) -> None:
    """Raise Quarantine if the cells belong to another lab, or if none belongs to this lab."""
    own = {r.cell.grade_id.partition("-")[0] for r in release.cells if r.cell.grade_id}
    foreign: list[str] = []
    belonging = 0
    for cell, released in zip(cells, found, strict=True):
        name = cell.grade_id or ""
        if _LAB_ID.match(name) and name.partition("-")[0] not in own:
            foreign.append(name)
        elif released is not None:
            belonging += 1
    if len(foreign) > belonging:
        raise Quarantine(f"This is another lab's notebook: it has the cell {foreign[0][:60]!r}.")
    if not any(found) and any(c.source.strip() for c in cells):
        raise Quarantine(
            "This notebook has no cell of this lab, and defines nothing that the lab asks for."
        )
