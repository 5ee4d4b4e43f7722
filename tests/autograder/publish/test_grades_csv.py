from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.base.course import Course
from autograder.base.csv_table import cell_text
from autograder.base.files import inside, write_whole
from autograder.publish.grades_csv import COLUMNS, points, write_grades
from autograder.store.out_folder import OutFolder
from tests.autograder.small_class import DOUBLE, HALVE, end_of, graded, make_course, verdict
from tests.autograder.small_release import LAB
from tests.files import csv_records


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return make_course(tmp_path / "course")


def test_the_file_is_exactly_this(tmp_path: Path, course: Course) -> None:
    results = [
        graded("zoe", verdicts=(verdict(status="partly"), verdict(HALVE, "needs_gpu"))),
        end_of("bob", "quarantined", "The file isn't a notebook:\nit is a PDF."),
        graded("ada", release="0.1.0+1f2e3d4c"),
    ]
    write_grades(results, OutFolder(tmp_path), course)
    manual = ("2", "manual grading", "", "Your instructor grades this answer.")
    not_read = ("quarantined", "", "The file isn't a notebook: it is a PDF.", "")
    release = "0.1.0+1f2e3d4c"
    rows = [
        COLUMNS[:-1],
        ("ada", LAB, "lab05-double", "2", "2", "correct", "", "Right.", release),
        ("ada", LAB, "lab05-halve", "0", "1", "incorrect", "squares", "It is x / 2.", release),
        ("ada", LAB, "lab05-explain", "", *manual, release),
        ("bob", LAB, "lab05-double", "", "2", *not_read),
        ("bob", LAB, "lab05-halve", "", "1", *not_read),
        ("bob", LAB, "lab05-explain", "", "2", *not_read),
        ("zoe", LAB, "lab05-double", "1.5", "2", "partially correct", "", "Not earned: edges.", ""),
        ("zoe", LAB, "lab05-halve", "", "1", "needs a GPU", "", "Not earned: edges.", ""),
        ("zoe", LAB, "lab05-explain", "", *manual, ""),
    ]
    kinds = ["kind", *["core"] * 9]
    whole = [(*row, kind) for row, kind in zip(rows, kinds, strict=True)]
    lines = [",".join(f'"{cell}"' for cell in row) for row in whole]
    assert (tmp_path / "grades.csv").read_text(encoding="utf-8") == "\n".join([*lines, ""])


def test_the_order_of_the_results_changes_no_byte(tmp_path: Path, course: Course) -> None:
    results = [graded(name) for name in ("c", "a", "b")]
    write_grades(results, OutFolder(tmp_path / "one"), course)
    write_grades(results[::-1], OutFolder(tmp_path / "two"), course)
    assert (tmp_path / "one/grades.csv").read_bytes() == (tmp_path / "two/grades.csv").read_bytes()


def test_an_exercise_without_a_verdict_has_its_row(tmp_path: Path, course: Course) -> None:
    write_grades([graded(verdicts=(verdict(HALVE),))], OutFolder(tmp_path), course)
    row = csv_records(tmp_path / "grades.csv")[0]
    assert (row["task"], row["status"], row["score"]) == (DOUBLE, "not judged", "")


def test_the_students_metadata_does_not_set_the_maximum(tmp_path: Path, course: Course) -> None:
    result = graded()
    assert result.notebook is not None
    for cell in result.notebook["cells"]:
        cell["metadata"].get("nbgrader", {})["points"] = 100
    write_grades([result], OutFolder(tmp_path), course)
    assert [row["max_score"] for row in csv_records(tmp_path / "grades.csv")] == ["2", "1", "2"]


@pytest.mark.parametrize("result", [graded(isolated=False), graded()])
def test_every_row_says_where_the_sandbox_was_missing(
    tmp_path: Path, course: Course, result
) -> None:
    write_grades([result], OutFolder(tmp_path), course)
    marked = {
        row["message"].startswith("NOT ISOLATED: ") for row in csv_records(tmp_path / "grades.csv")
    }
    assert marked == {not result.isolated}


def test_no_text_of_a_student_is_a_formula(tmp_path: Path, course: Course) -> None:
    evil = '=HYPERLINK("http://evil.example";"x")'
    results = [graded("@SUM(1)", verdicts=(verdict(message=f"\t\r\n{evil}"),))]
    write_grades(results, OutFolder(tmp_path), course)
    row = csv_records(tmp_path / "grades.csv")[0]
    assert (row["student"], row["message"]) == ("'@SUM(1)", f"'{evil}")


@given(st.text() | st.from_regex(r"\A\s*[=+@\uff1d\uff0b\uff0d\uff20-]1"))
def test_a_cell_is_one_line_and_no_formula(text: str) -> None:
    cell = cell_text(text)
    assert not cell.startswith(
        ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r")
    )
    assert len(cell.splitlines()) <= 1
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow([cell, "end"])
    assert list(csv.reader(io.StringIO(stream.getvalue(), newline=""))) == [[cell, "end"]]


def test_points_are_plain_numbers() -> None:
    assert [points(p) for p in (0.0, 4.0, 1.5, 0.1 + 0.2, 1 / 3)] == [
        *("0", "4", "1.5", "0.3"),
        "0.333333",
    ]


def test_a_write_that_breaks_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    write_whole(path, b"old")
    with pytest.raises(TypeError):
        write_whole(path, "no bytes")  # type: ignore[arg-type]
    assert [p.name for p in tmp_path.iterdir()] == ["grades.csv"]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "a\\b", "a\0"])
def test_a_students_name_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a file"):
        inside(tmp_path, name)
