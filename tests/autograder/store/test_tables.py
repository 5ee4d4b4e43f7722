"""The tables and rows that are written without nbgrader, beside those that nbgrader writes."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader import api
from nbgrader.preprocessors import SaveCells

from autograder.notebooks.questions import source_notebooks
from autograder.store.cells import save_cells
from autograder.store.database import Entries, save_entries
from autograder.store.gradebook_file import create_tables, database_url
from autograder.store.out_folder import OutFolder
from tests.autograder.small_release import LAB

COURSE_LABS = ("lab01_formats", "lab06_swap")


def layout(path: Path) -> dict[str, Any]:
    """Every table's columns, keys and unique constraints, as SQLite reports them."""
    with closing(sqlite3.connect(path)) as book:
        names = [n for (n,) in book.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: (
                [row[1:] for row in book.execute(f"PRAGMA table_info({name})")],
                sorted(row[2:] for row in book.execute(f"PRAGMA foreign_key_list({name})")),
                sorted(
                    tuple(part[2] for part in book.execute(f"PRAGMA index_info({index[1]})"))
                    for index in book.execute(f"PRAGMA index_list({name})")
                ),
            )
            for name in names
        }


def rows(path: Path) -> dict[str, list[Any]]:
    """Every cell of the gradebook, by what it says and not by the ids that were drawn."""
    queries = {
        "course": "SELECT id FROM course",
        "notebook": "SELECT a.name, a.course_id, a.duedate, n.name, n.kernelspec FROM notebook n "
        "JOIN assignment a ON a.id = n.assignment_id",
        "grade": "SELECT b.name, b.type, c.max_score, c.cell_type FROM grade_cells c "
        "JOIN base_cell b ON b.id = c.id",
        "solution": "SELECT b.name, b.type FROM solution_cells c JOIN base_cell b ON b.id = c.id",
        "task": "SELECT b.name, b.type, c.max_score, c.cell_type FROM task_cells c "
        "JOIN base_cell b ON b.id = c.id",
        "source": "SELECT n.name, s.name, s.cell_type, s.locked, s.source, s.checksum "
        "FROM source_cell s JOIN notebook n ON n.id = s.notebook_id",
        "version": "SELECT version_num FROM alembic_version",
    }
    with closing(sqlite3.connect(path)) as book:
        return {name: sorted(book.execute(query)) for name, query in queries.items()}


def by_nbgrader(out: Path, lab: str, sources: dict[str, Any]) -> None:
    with api.Gradebook(database_url(OutFolder(out))) as gradebook:
        if all(assignment.name != lab for assignment in gradebook.assignments):
            gradebook.add_assignment(lab)
    for name, source in sources.items():
        where = {"notebook": name, "assignment": lab, "db_url": database_url(OutFolder(out))}
        SaveCells().preprocess(nbformat.from_dict(source), {"nbgrader": where})


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    scripts = str(Path(sys.executable).parent)  # nbgrader runs `alembic` by its bare name
    monkeypatch.setenv("PATH", scripts, prepend=os.pathsep)
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    return tmp_path / "ours", tmp_path / "theirs"


def test_the_tables_are_those_of_the_installed_nbgrader(places: tuple[Path, Path]) -> None:
    ours, theirs = (place / "gradebook.db" for place in places)
    create_tables(OutFolder(ours.parent))
    by_nbgrader(theirs.parent, LAB, {})
    found, expected = layout(ours), layout(theirs)
    # nbgrader makes alembic's table by hand, without the key that alembic gives it.
    assert found.pop("alembic_version")[0][0][0] == expected.pop("alembic_version")[0][0][0]
    assert found == expected
    assert rows(ours)["version"] == rows(theirs)["version"] != []


@pytest.mark.parametrize("lab", COURSE_LABS)
def test_a_labs_cells_are_recorded_as_nbgrader_does(places: tuple[Path, Path], lab: str) -> None:
    sources = source_notebooks(lab)
    save_cells(OutFolder(places[0]), lab, sources)
    by_nbgrader(places[1], lab, sources)
    assert rows(places[0] / "gradebook.db") == rows(places[1] / "gradebook.db")
    assert len(rows(places[0] / "gradebook.db")["grade"]) > 5


def marked(grade_id: str, **marks: Any) -> dict[str, Any]:
    kind = marks.pop("cell_type", "code")
    every = {"grade": False, "solution": False, "locked": False, "task": False}
    metadata = {"nbgrader": {"grade_id": grade_id, "schema_version": 3, **every, **marks}}
    return {"cell_type": kind, "id": grade_id, "metadata": metadata, "source": f"# {grade_id}"}


SHEET = {
    "cells": [
        {"cell_type": "markdown", "id": "text", "metadata": {}, "source": "text"},
        marked("given", locked=True),
        marked("tests", grade=True, locked=True, points=3),
        marked("answer", grade=True, solution=True, points=2.5, cell_type="markdown"),
        marked("open", task=True, points=4, cell_type="markdown"),
        marked("free"),
        marked("code", solution=True, checksum="abc"),
    ],
    "metadata": {"kernelspec": {"name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def test_every_kind_of_cell_is_recorded_as_nbgrader_does(places: tuple[Path, Path]) -> None:
    changed = deepcopy(SHEET)
    changed["cells"][2]["metadata"]["nbgrader"]["points"] = 7
    changed["cells"][5] = marked("more", grade=True, points=1)
    del changed["cells"][4]
    changed["metadata"] = {}
    for sheet in (SHEET, changed):
        save_cells(OutFolder(places[0]), "ps", {"one": sheet, "two": SHEET})
        by_nbgrader(places[1], "ps", {"one": sheet, "two": SHEET})
        assert rows(places[0] / "gradebook.db") == rows(places[1] / "gradebook.db")


def test_cells_that_submissions_have_stay(places: tuple[Path, Path]) -> None:
    changed = deepcopy(SHEET)
    changed["cells"].append(marked("more", grade=True, points=1))
    dearer = deepcopy(SHEET)
    dearer["cells"][2]["metadata"]["nbgrader"]["points"] = 7
    for place in places:
        by_nbgrader(place, "ps", {"one": SHEET})
        save_entries(OutFolder(place), "ps", {"ada": Entries({}, {})})
    with pytest.raises(ValueError, match="other cells"):
        save_cells(OutFolder(places[0]), "ps", {"one": changed})
    with pytest.raises(RuntimeError):
        by_nbgrader(places[1], "ps", {"one": changed})
    save_cells(OutFolder(places[0]), "ps", {"one": dearer})
    by_nbgrader(places[1], "ps", {"one": dearer})
    found = rows(places[0] / "gradebook.db")
    assert found == rows(places[1] / "gradebook.db")
    assert ("tests", "GradeCell", 7.0, "code") in found["grade"]
