"""The tables for other systems: numbers stay numbers, and no text becomes a formula."""

from pathlib import Path

import pytest

from autograder.model.lateness import Lateness
from autograder.model.submission import SubmissionKey
from autograder.publish.final_grades import Standing
from autograder.publish.tables import Cells, write_canvas, write_students
from autograder.rules.semester import Student
from tests.files import csv_rows

LAB = "lab01_formats"


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
@pytest.mark.parametrize("before", ["", "    ", "\t", "\r"])
def test_no_name_is_a_formula(tmp_path: Path, sign: str, before: str) -> None:
    evil = f"{before}{sign}1+1"
    people = {"ada": Student("ada", evil, evil, evil, evil)}
    key = SubmissionKey("ada", LAB)
    standings = {key: Standing(key, 2.0, 3.0, release=evil)}
    write_students(standings, people, tmp_path / "students.csv")
    write_canvas(standings, people, tmp_path / "canvas.csv")
    cells = [
        cell
        for name in ("students", "canvas")
        for row in csv_rows(tmp_path / f"{name}.csv")
        for cell in row
    ]
    assert f"'{sign}1+1" in cells
    assert not [cell for cell in cells if cell.lstrip().startswith(sign)]


def test_less_than_no_points_is_a_number(tmp_path: Path) -> None:
    key = SubmissionKey("ada", LAB)
    standings = {key: Standing(key, -0.5, 3.0)}
    write_students(standings, {"ada": Student("ada")}, tmp_path / "students.csv")
    write_canvas(standings, {"ada": Student("ada")}, tmp_path / "canvas.csv")
    assert csv_rows(tmp_path / "students.csv")[1][4:10] == ["-0.5", "3", "-0.5", "0", "0", "-0.5"]
    assert csv_rows(tmp_path / "canvas.csv")[2][-1] == "-0.5"


def canvas(tmp_path: Path, *standings: Standing, partial: bool) -> tuple[list[str], Cells]:
    """The points of each student in Canvas's file, and how many are not final."""
    by_key = {standing.key: standing for standing in standings}
    people = {standing.key.student: Student(standing.key.student) for standing in standings}
    counts = write_canvas(by_key, people, tmp_path / "canvas.csv", partial=partial)
    return [row[-1] for row in csv_rows(tmp_path / "canvas.csv")[2:]], counts[LAB]


def test_points_so_far_go_to_canvas_if_they_are_asked_for(tmp_path: Path) -> None:
    late = Lateness(20, days=2)
    ada, bob, eve = (SubmissionKey(name, LAB) for name in ("ada", "bob", "eve"))
    standings = (
        Standing(ada, 21.5, 25.0, late, scored=23.0, waiting=("explain",)),
        Standing(bob, 20.0, 25.0, scored=25.0),
        Standing(eve, 0.0, 25.0, waiting=("all of a file that cannot be read",)),
    )
    assert canvas(tmp_path, *standings, partial=False) == (["", "20", ""], Cells(empty=2))
    held = (["17.2", "20", ""], Cells(empty=1, partial=1))
    assert canvas(tmp_path, *standings, partial=True) == held
