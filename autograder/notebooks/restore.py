"""Restores the release's given cells in a notebook, and keeps everything the student wrote.

Only the release decides which cells are given, which are graded, and for how many points. A
student's metadata only helps to match cells:

1. by nbgrader's grade_id, then by nbformat's cell id, then by a source equal to the released one;
2. code that defines the names an exercise asks for answers that exercise, whatever its ids are.

Cells stay in the student's order, because the student ran the notebook in that order. A deleted
given cell returns to its place: after the cell that it follows in the release, and before all cells
that it precedes. A changed given cell is restored, and the student's version follows it as text or
as a raw cell that doesn't run, so no work is lost. If that version defines the names that an
exercise asks for, it runs as the exercise's solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal

from autograder.model.note import Note
from autograder.model.submission import RunCell
from autograder.notebooks.matching import match, refuse_strangers
from autograder.notebooks.parse import Cell
from autograder.notebooks.released import Release, Released, is_same, plain, task_of

__all__ = ["DELETED", "restore"]

DELETED = "deleted"  # metadata key of a restored cell that the student had deleted


@dataclass
class _Slot:
    """A cell of the notebook to be graded."""

    #: The cell's content.
    cell: Cell
    #: The released cell whose id and metadata it gets.
    released: Released | None = None
    #: How it runs; None if it doesn't.
    run: Literal["given", "check", "solution", "own"] | None = None
    #: The released cell of the exercise that it answers.
    answers: Released | None = None
    #: Whether the student deleted it, if that matters later.
    deleted: bool = False


def restore(
    release: Release, cells: Sequence[Cell]
) -> tuple[dict[str, Any], tuple[RunCell, ...], list[Note]]:
    """Return the notebook to be graded as nbformat 4.5 JSON, the cells that run, and notes.

    Raises Quarantine if the cells belong to another lab, or if none belongs to this lab.
    """
    notes: list[Note] = []
    found = match(release, cells, notes)
    refuse_strangers(release, cells, found)
    idle = {plain(r.cell.source) for r in release.cells if not r.runs_as_released}
    slots = _place(cells, found, idle, notes)
    _put_back(release, slots, notes)
    _leave_out_stubs(slots, notes)
    return _write(release, slots), _to_run(slots), notes


def _place(
    cells: Sequence[Cell], found: Sequence[Released | None], idle: set[str], notes: list[Note]
) -> list[_Slot]:
    """The student's cells in order, with given cells as released.

    `idle` are the sources of cells that never run.
    """
    bears = _bearers(cells, found)
    changed: list[str] = []
    retyped: list[str] = []
    slots: list[_Slot] = []
    for i, cell in enumerate(cells):
        released, answers = bears.get(i), found[i]
        if released and released.cell.kind != cell.kind:
            retyped.append(released.label)
        if answers and answers.role == "solution":
            slots.append(_Slot(replace(cell, kind="code"), released, "solution", answers))
        elif released and released.restored:
            slots.append(_as_released(released))
            if not is_same(cell, released):
                changed.append(released.label)
                slots.append(_Slot(replace(cell, kind="raw" if cell.kind == "code" else cell.kind)))
        else:
            kind = released.cell.kind if released else cell.kind
            runs = kind == "code" and plain(cell.source) not in idle
            slots.append(_Slot(replace(cell, kind=kind), released, "own" if runs else None))
    if changed:
        notes.append(
            Note(
                "given",
                "Given cells that you changed were restored; your version is shown below each "
                f"and wasn't run: {', '.join(changed)}.",
            )
        )
    if retyped:
        said = f"Restored to the released cell type: {', '.join(retyped)}."
        notes.append(Note("repair", said))
    return slots


def _bearers(cells: Sequence[Cell], found: Sequence[Released | None]) -> dict[int, Released]:
    """For each released cell, choose the student's cell that gets its id and metadata."""
    places: dict[int, list[int]] = {}
    for i, released in enumerate(found):
        if released is not None:
            places.setdefault(released.index, []).append(i)
    bears: dict[int, Released] = {}
    for at in places.values():
        released = found[at[0]]
        assert released is not None
        same = [i for i in at if is_same(cells[i], released)]
        other = [i for i in at if i not in same]
        if released.test is not None:
            bears[(same or other)[-1]] = released  # by then, most names that it tests are defined
        elif released.restored:
            bears[(same or other)[0]] = released
        elif released.role == "solution":
            bears[(other or same)[-1]] = released  # the last definition counts
        else:
            bears[(other or same)[0]] = released
    return bears


def _as_released(released: Released) -> _Slot:
    run: Literal["given", "check"] | None = None
    if released.cell.kind == "code" and released.restored and released.runs_as_released:
        run = "given" if released.role == "given" else "check"
    return _Slot(released.cell, released, run)


def _put_back(release: Release, slots: list[_Slot], notes: list[Note]) -> None:
    """Insert deleted cells; a deleted solution returns as its stub, which doesn't run."""
    there = {slot.released.index for slot in slots if slot.released}
    deleted: list[str] = []
    unanswered: list[str] = []
    for released in release.cells:
        if released.index in there or released.role == "free":
            continue
        back = _as_released(released)
        back.deleted = release.trusts_ids or released.role == "answer"
        slots.insert(_position(slots, released.index), back)
        (unanswered if released.role == "solution" else deleted).append(released.label)
    if deleted:
        notes.append(Note("repair", f"Deleted, and restored as released: {', '.join(deleted)}."))
    if unanswered:
        notes.append(
            Note(
                "repair",
                "You deleted the solution cell, so there was nothing to grade: "
                f"{', '.join(unanswered)}.",
            )
        )


def _position(slots: Sequence[_Slot], index: int) -> int:
    """The place of released cell `index`: after its predecessor, before all its successors."""
    after, nearest, before = 0, -1, len(slots)
    for position, slot in enumerate(slots):
        mark = slot.released or slot.answers
        if mark is None:
            continue
        if nearest <= mark.index < index:
            after, nearest = position + 1, mark.index
        elif mark.index > index and slot.cell.kind == "code":
            before = min(before, position)
    return min(after, before)


def _leave_out_stubs(slots: Sequence[_Slot], notes: list[Note]) -> None:
    """Skip an unedited stub if another cell answers its exercise, and note repeated answers."""
    written: dict[int, list[_Slot]] = {}
    for slot in slots:
        if slot.answers and not _is_untouched(slot):
            written.setdefault(slot.answers.index, []).append(slot)
    for slot in slots:
        if slot.answers and slot.answers.index in written and _is_untouched(slot):
            slot.run = None
    for several in written.values():
        if len(several) > 1 and several[0].answers:
            notes.append(
                Note(
                    "repair",
                    f"{several[0].answers.label} is answered in {len(several)} cells; they ran in "
                    "order, so the last definition counts.",
                )
            )


def _write(release: Release, slots: Sequence[_Slot]) -> dict[str, Any]:
    used = {r.cell.id for r in release.cells if r.cell.id}
    cells = []
    for number, slot in enumerate(slots, start=1):
        if slot.released:
            name = slot.released.cell.id or f"given-{number}"
        elif slot.cell.id and slot.cell.id not in used:
            name = slot.cell.id
        else:
            name = f"own-{number}"
        used.add(name)
        cells.append(_cell_json(slot, name))
    return {
        "cells": cells,
        "metadata": deepcopy(dict(release.metadata)),
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell_json(slot: _Slot, name: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"tags": list(slot.cell.tags)} if slot.cell.tags else {}
    if slot.released:
        metadata = dict(slot.released.json.get("metadata", {}))
    if slot.deleted:
        metadata[DELETED] = True
    cell: dict[str, Any] = {"cell_type": slot.cell.kind, "id": name, "metadata": metadata}
    if slot.cell.kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    elif slot.cell.attachments:
        cell["attachments"] = {n: dict(bodies) for n, bodies in slot.cell.attachments.items()}
    return cell | {"source": slot.cell.source}


def _to_run(slots: Sequence[_Slot]) -> tuple[RunCell, ...]:
    return tuple(
        RunCell(
            index=index,
            source=source,
            kind=slot.run,
            task=_task_of(slot),
            is_untouched=_is_untouched(slot),
        )
        for index, slot in enumerate(slots)
        if slot.run and (source := _source_of(slot)).strip()
    )


def _is_untouched(slot: _Slot) -> bool:
    return slot.answers is not None and is_same(slot.cell, slot.answers)


def _source_of(slot: _Slot) -> str:
    test = slot.released.test if slot.released and slot.run == "check" else None
    return slot.cell.source if test is None else test


def _task_of(slot: _Slot) -> str | None:
    if slot.run == "check" and slot.released:
        return slot.released.cell.grade_id
    return task_of(slot.answers.cell.grade_id or "") if slot.answers else None
