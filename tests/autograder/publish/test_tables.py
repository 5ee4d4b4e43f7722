"""The tables of other systems: numbers stay numbers, and no text of anybody's is a formula."""

import csv
from pathlib import Path

import pytest

from autograder.publish.final_grades import Standing
from autograder.publish.tables import write_canvas, write_students
from autograder.rules.semester import Student

LAB = "lab01_formats"


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
@pytest.mark.parametrize("before", ["", "    ", "\t", "\r"])
def test_no_name_is_a_formula(tmp_path: Path, sign: str, before: str) -> None:
    evil = f"{before}{sign}1+1"
    people = {"ada": Student("ada", evil, evil, evil, evil)}
    standings = {("ada", LAB): Standing("ada", LAB, 2.0, 3.0, release=evil)}
    write_students(standings, people, tmp_path / "students.csv")
    write_canvas(standings, people, tmp_path / "canvas.csv")
    cells = [
        cell
        for name in ("students", "canvas")
        for row in rows(tmp_path / f"{name}.csv")
        for cell in row
    ]
    assert f"'{sign}1+1" in cells
    assert not [cell for cell in cells if cell.lstrip().startswith(sign)]


def test_less_than_no_points_is_a_number(tmp_path: Path) -> None:
    standings = {("ada", LAB): Standing("ada", LAB, -0.5, 3.0)}
    write_students(standings, {"ada": Student("ada")}, tmp_path / "students.csv")
    write_canvas(standings, {"ada": Student("ada")}, tmp_path / "canvas.csv")
    assert rows(tmp_path / "students.csv")[1][4:8] == ["-0.5", "3", "0", "-0.5"]
    assert rows(tmp_path / "canvas.csv")[2][-1] == "-0.5"
