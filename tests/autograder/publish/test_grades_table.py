from __future__ import annotations

from pathlib import Path

import pytest

from autograder.base.damage import Damaged
from autograder.publish.final_grades import standings
from autograder.publish.grades_csv import write_grades
from autograder.publish.grades_table import read_grades
from autograder.store.out_folder import OutFolder
from tests.autograder.small_class import graded, make_course


@pytest.fixture
def out(tmp_path: Path) -> OutFolder:
    found = OutFolder(tmp_path / "out")
    write_grades([graded("zoe"), graded("ada")], found, make_course(tmp_path / "course"))
    return found


def test_the_rows_come_by_submission_with_ids_for_statuses(out: OutFolder) -> None:
    rows = read_grades(out)
    assert [key.student for key in rows] == ["ada", "zoe"]
    assert {row["status"] for own in rows.values() for row in own} == {"right", "wrong", "manual"}


def test_without_the_file_there_are_no_rows_but_no_standings_either(tmp_path: Path) -> None:
    assert read_grades(OutFolder(tmp_path)) == {}
    with pytest.raises(FileNotFoundError, match="run `autograder grade`"):
        standings(OutFolder(tmp_path))


def test_a_table_of_something_else_is_refused_in_one_sentence(out: OutFolder) -> None:
    out.grades.write_text("name,grade\nada,1.0\n", encoding="utf-8")
    with pytest.raises(Damaged, match=r"is damaged \(its first row is \['name', 'grade'\]\)"):
        standings(out)
