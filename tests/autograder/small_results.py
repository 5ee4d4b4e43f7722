"""A results folder of a small class with one of every file in it, made without any sandbox."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.base.course import Course
from autograder.cli.app import main
from autograder.model.submission import SubmissionKey
from autograder.publish.publishing import publish
from autograder.review.changes import Change, note_down
from autograder.rules.waivers import write_waivers
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from autograder.store.roll import note_taken
from tests.autograder.small_class import (
    DOUBLE,
    EXPLAIN,
    HALVE,
    end_of,
    graded,
    make_course,
    verdict,
)
from tests.autograder.small_release import LAB

__all__ = ["TERMS", "Results", "give_points", "gradebook_rows", "make_results", "tables"]

STRANGE = "out #1 50%25? 'ü'"  # a name that a careless URL takes apart
TERMS = {"lab": "a version", "limits": {}, "isolated": True}
RESULTS = (
    graded("ada"),
    graded("kim", verdicts=(verdict(status="partly"), verdict(HALVE))),
    end_of("lin", "quarantined", "It is no notebook."),
)


@dataclass(frozen=True)
class Results:
    """A results folder and the course that it was graded with."""

    out: Path
    course: Course

    def run(self, command: str, *more: str) -> int:
        """Run a command on the folder as the command line does; return its exit status."""
        return main(["--course", str(self.course), command, str(self.out), *more])


def make_results(folder: Path) -> Results:
    """Grade, publish, give manual points, and export."""
    course, out = make_course(folder / "course"), folder / "graded" / STRANGE
    course.secret()
    out.mkdir(parents=True)
    (out / "semester.toml").write_text('roster = "roster.csv"\n')
    (out / "roster.csv").write_text("id,last_name\nada,Lovelace\nkim,\nlin,\nzoe,Absent\n")
    write_waivers({f"{HALVE}": "Its text was not clear."}, OutFolder(out))
    note_taken(OutFolder(out), LAB, [result.student for result in RESULTS])
    for result in RESULTS:
        Journal(OutFolder(out)).keep(result, result.student.encode(), {}, TERMS)
    publish(OutFolder(out), course)
    give_points(out, "ada", EXPLAIN, 1.5, "Well said.")
    give_points(out, "kim", DOUBLE, 1.25)
    results = Results(out, course)
    note_down(
        [Change(SubmissionKey("kim", LAB), DOUBLE, "0", "1.5", "Two parts.", "No part.")],
        OutFolder(out),
    )
    assert results.run("export") == 0
    return results


def give_points(out: Path, student: str, cell: str, points: float, comment: str = "") -> None:
    """Give points as Formgrader does, by the database's own language."""
    theirs = (
        "notebook_id IN (SELECT n.id FROM submitted_notebook n JOIN submitted_assignment a "
        "ON n.assignment_id = a.id WHERE a.student_id = ?) "
        "AND cell_id IN (SELECT id FROM base_cell WHERE name = ?)"
    )
    with closing(sqlite3.connect(out / "gradebook.db")) as book, book:
        done = book.execute(
            f"UPDATE grade SET manual_score = ?, needs_manual_grade = 0 WHERE {theirs}",
            (points, student, cell),
        )
        assert done.rowcount == 1
        if comment:
            book.execute(
                f"UPDATE comment SET manual_comment = ? WHERE {theirs}", (comment, student, cell)
            )


def tables(out: Path) -> dict[str, bytes]:
    """All published files of a results folder, by relative path."""
    whole = ("grades.csv", "manual_review.csv", "export/*.csv", "export/*.zip")
    patterns = (*whole, "feedback/*/*.html", "autograded/*/*/*.ipynb")
    files = (path for pattern in patterns for path in sorted(out.glob(pattern)))
    where = str(out.parent).encode()
    return {
        str(path.relative_to(out)): path.read_bytes().replace(where, b"")
        for path in files
        if path.is_file()
    }


def gradebook_rows(out: Path) -> list[tuple[Any, ...]]:
    """All grades and comments, manual ones included, read without the grader's code."""
    joined = (
        "JOIN submitted_notebook n ON t.notebook_id = n.id "
        "JOIN submitted_assignment a ON n.assignment_id = a.id "
        "JOIN base_cell c ON t.cell_id = c.id"
    )
    queries = (
        "SELECT a.student_id, c.name, c.type, t.auto_score, t.manual_score, t.extra_credit, "
        f"t.needs_manual_grade FROM grade t {joined}",
        f"SELECT a.student_id, c.name, c.type, t.auto_comment, t.manual_comment "
        f"FROM comment t {joined}",
        "SELECT id, first_name, last_name, email FROM student",
    )
    with closing(sqlite3.connect(out / "gradebook.db")) as book:
        return sorted((row for query in queries for row in book.execute(query)), key=repr)
