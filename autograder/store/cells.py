"""Records an assignment's cells in nbgrader's database, as its `generate_assignment` does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from autograder.store import tables
from autograder.store.gradebook_file import create_tables, open_session
from autograder.store.out_folder import OutFolder

__all__ = ["save_cells"]

_COURSE = "default_course"  # nbgrader's only course by default
_KINDS: dict[str, Any] = {
    "GradeCell": tables.GradeCell,
    "SolutionCell": tables.SolutionCell,
    "TaskCell": tables.TaskCell,
}

Key = tuple[str, str]  # a kind of cell and its grade_id


@dataclass(frozen=True)
class _Cells:
    """The database columns of a notebook's cells."""

    #: Cells that are graded or solved, by kind and grade_id.
    marked: Mapping[Key, Mapping[str, Any]]
    #: Cells whose source is stored, by grade_id.
    sources: Mapping[str, Mapping[str, Any]]


def save_cells(out: OutFolder, lab: str, sources: Mapping[str, Mapping[str, Any]]) -> None:
    """Record the assignment `lab` and its cells, as nbgrader's `generate_assignment` does.

    `sources` are its source notebooks by name, as nbformat 4 JSON.

    Raises ValueError if the gradebook has submissions of a version of the lab with other cells.
    """
    create_tables(out)
    with open_session(out) as session:
        assignment = _assignment(session, lab)
        for name, source in sources.items():
            if not _save_notebook(session, assignment, name, source):
                raise ValueError(
                    f"{out.gradebook} contains submissions of {lab} from when the lab had other "
                    "cells; grade into a new folder"
                )


def _assignment(session: Session, lab: str) -> str:
    """The id of an assignment, added if it is new."""
    if session.get(tables.Course, _COURSE) is None:
        session.execute(insert(tables.Course), [{"id": _COURSE}])
    known = session.scalar(select(tables.Assignment.id).where(tables.Assignment.name == lab))
    new = known or tables.new_uuid()
    if known is None:
        row = {"id": new, "name": lab, "course_id": _COURSE}
        session.execute(insert(tables.Assignment), [row])
    return new


def _save_notebook(session: Session, assignment: str, name: str, source: Mapping[str, Any]) -> bool:
    """Record one notebook; return False if its cells differ from those of its submissions."""
    cells = _cells_of(source)
    notebook = session.execute(
        select(tables.Notebook.id).where(
            tables.Notebook.assignment_id == assignment, tables.Notebook.name == name
        )
    ).scalar()
    kernelspec = json.dumps(source.get("metadata", {}).get("kernelspec", {}))
    if notebook is None:
        notebook = tables.new_uuid()
        row = {"id": notebook, "name": name, "assignment_id": assignment, "kernelspec": kernelspec}
        session.execute(insert(tables.Notebook), [row])
    marked, kept = _recorded(session, notebook)
    if _has_submissions(session, notebook):
        if marked.keys() != cells.marked.keys() or kept.keys() != cells.sources.keys():
            return False
    else:
        _drop(session, marked, kept, cells)
        values = {"kernelspec": kernelspec}
        where = tables.Notebook.id == notebook
        session.execute(update(tables.Notebook).where(where).values(values))
    _write(session, notebook, marked, kept, cells)
    return True


def _has_submissions(session: Session, notebook: str) -> bool:
    submitted = tables.SubmittedNotebook
    some = select(submitted.id).where(submitted.notebook_id == notebook).limit(1)
    return session.scalar(some) is not None


def _recorded(session: Session, notebook: str) -> tuple[dict[Key, str], dict[str, str]]:
    """The ids of the recorded cells, and of the recorded sources."""
    cell, kept = tables.BaseCell, tables.SourceCell
    marked = select(cell.type, cell.name, cell.id).where(cell.notebook_id == notebook)
    named = select(kept.name, kept.id).where(kept.notebook_id == notebook)
    return (
        {(kind, name): place for kind, name, place in session.execute(marked)},
        dict(session.execute(named).all()),
    )


def _drop(session: Session, marked: dict[Key, str], kept: dict[str, str], cells: _Cells) -> None:
    """Remove cells and sources that the notebook no longer has."""
    for key in marked.keys() - cells.marked.keys():
        place = marked.pop(key)
        kind = _KINDS[key[0]]
        session.execute(delete(kind).where(kind.id == place))
        session.execute(delete(tables.BaseCell).where(tables.BaseCell.id == place))
    for name in kept.keys() - cells.sources.keys():
        place = kept.pop(name)
        session.execute(delete(tables.SourceCell).where(tables.SourceCell.id == place))


def _write(
    session: Session,
    notebook: str,
    marked: Mapping[Key, str],
    kept: Mapping[str, str],
    cells: _Cells,
) -> None:
    for (kind, name), columns in cells.marked.items():
        table, place = _KINDS[kind], marked.get((kind, name))
        if place is None:
            place = tables.new_uuid()
            base = {"id": place, "name": name, "notebook_id": notebook, "type": kind}
            session.execute(insert(tables.BaseCell), [base])
            session.execute(insert(table), [{"id": place, **columns}])
        elif columns:
            session.execute(update(table).where(table.id == place).values(columns))
    for name, columns in cells.sources.items():
        if name in kept:
            where = tables.SourceCell.id == kept[name]
            session.execute(update(tables.SourceCell).where(where).values(columns))
        else:
            row = {"name": name, "notebook_id": notebook, **columns}
            session.execute(insert(tables.SourceCell), [row])


def _cells_of(source: Mapping[str, Any]) -> _Cells:
    marked: dict[Key, dict[str, Any]] = {}
    sources: dict[str, dict[str, Any]] = {}
    for cell, marks in _with_marks(source):
        name, graded = marks["grade_id"], marks.get("grade", False)
        solved, task = marks.get("solution", False), marks.get("task", False)
        scored = {"cell_type": cell["cell_type"], "max_score": float(marks.get("points", 0))}
        if graded:
            marked["GradeCell", name] = scored
        if solved:
            marked["SolutionCell", name] = {}
        if task:
            marked["TaskCell", name] = scored
        locked = not solved and (graded or marks.get("locked", False))
        if graded or solved or task or locked:
            sources[name] = {
                "cell_type": cell["cell_type"],
                "locked": bool(locked),
                "source": "".join(cell["source"]),
                "checksum": marks.get("checksum"),
            }
    return _Cells(marked, sources)


def _with_marks(
    source: Mapping[str, Any],
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for cell in source["cells"]:
        marks = cell["metadata"].get("nbgrader")
        if marks:
            yield cell, marks
