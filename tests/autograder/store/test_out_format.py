"""The format of a results folder: an older one is read and brought up to date, a newer refused.

An earlier grader, whose folders had no version, wrote `out_before_versions`. Its
gradebook is kept as SQL. The settings of nbgrader are left out: every command writes them again.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from autograder.base.damage import Damaged
from autograder.cli.app import main
from autograder.cli.report import PROBLEM, USAGE
from autograder.model.submission import SubmissionKey
from autograder.publish.audit import audit
from autograder.publish.final_grades import standings
from autograder.store.journal import Journal
from autograder.store.manual_backup import manual_in
from autograder.store.out_folder import FILES, FOLDERS, OutFolder
from autograder.store.out_format import FORMAT, format_of, require_known_format, write_format
from tests.autograder.small_class import DOUBLE, EXPLAIN, make_course
from tests.autograder.small_release import LAB

BEFORE = Path(__file__).parent / "out_before_versions"
SCORES = {"ada": 4.5, "kim": 2.25, "lin": 0, "mia": 1, "nur": 0, "pam": 1, "sam": 1, "zoe": 0}


def key(student: str) -> SubmissionKey:
    return SubmissionKey(student, LAB)


@pytest.fixture
def before(tmp_path: Path) -> OutFolder:
    """A copy of the old folder, with its gradebook as a database again."""
    out = OutFolder(shutil.copytree(BEFORE, tmp_path / "out"))
    with closing(sqlite3.connect(out.gradebook)) as book:
        book.executescript((out.path / "gradebook.sql").read_text())
    (out.path / "gradebook.sql").unlink()
    return out


def run(out: OutFolder, command: str) -> int:
    """Run a command on the folder, with the course that it was graded with."""
    course = make_course(out.path.parent / "course")
    return main(["--course", str(course), command, str(out)])


def test_repair_writes_nothing_into_another_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = str(make_course(tmp_path / "course").root)
    for out in ("nowhere", "course"):
        files = sorted(tmp_path.rglob("*"))
        assert main(["--course", course, "repair", str(tmp_path / out)]) == USAGE
        assert f"{out} contains no grades" in capsys.readouterr().err
        assert sorted(tmp_path.rglob("*")) == files


def test_an_older_folder_is_read_as_it_is(before: OutFolder) -> None:
    files = {path: path.read_bytes() for path in before.path.rglob("*") if path.is_file()}
    assert format_of(before) == 0
    assert audit(before) == []
    found = standings(before)
    assert {of.student: standing.points for of, standing in found.items()} == SCORES
    assert found[key("ada")].final == pytest.approx(4.05)
    assert found[key("pam")].of == 3  # what needs a GPU is left out
    assert Journal(before).answers(key("sam"))[DOUBLE][0].value == 4
    assert {path: path.read_bytes() for path in before.path.rglob("*") if path.is_file()} == files


def test_an_older_folder_is_of_the_present_format_once_it_is_published(
    before: OutFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    manual = manual_in(before)
    assert run(before, "export") == PROBLEM  # nur's submission failed, then as now
    assert "nur" in capsys.readouterr().err
    assert format_of(before) == FORMAT
    assert audit(before) == []
    assert manual_in(before) == manual
    assert manual[key("ada")].points == {EXPLAIN: 1.5}
    assert {of.student: standing.points for of, standing in standings(before).items()} == SCORES
    assert not (before.path / "needs_a_person.csv").exists()
    assert before.manual_review.is_file()


@pytest.mark.parametrize("command", ["audit", "export", "formgrade", "rejudge", "repair"])
def test_a_newer_folder_is_refused_in_one_sentence_and_left_alone(
    before: OutFolder, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    before.format.write_text(json.dumps({"format": FORMAT + 1, "and": "more"}))
    files = {path: path.read_bytes() for path in before.path.rglob("*") if path.is_file()}
    assert run(before, command) == USAGE
    assert capsys.readouterr().err == (
        f"autograder {command}: {before} has format {FORMAT + 1}, but this grader knows formats "
        f"up to {FORMAT}; use the grader that wrote it, or give another OUT\n"
    )
    assert {path: path.read_bytes() for path in before.path.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 0}', '{"format": true}'])
def test_a_version_that_is_none_is_damage(tmp_path: Path, text: str) -> None:
    out = OutFolder(tmp_path)
    write_format(out)
    require_known_format(out)
    out.format.write_text(text)
    with pytest.raises(Damaged, match=r"format\.json"):
        require_known_format(out)


def test_repair_writes_a_damaged_version_again(before: OutFolder) -> None:
    assert run(before, "export") == PROBLEM
    before.format.write_text("{")
    shutil.rmtree(before.path.parent / "course")
    assert run(before, "repair") == PROBLEM
    assert format_of(before) == FORMAT
    assert (before.damaged / "format.json").read_text() == "{"


def test_the_patterns_cover_every_file_that_a_command_writes(before: OutFolder) -> None:
    assert run(before, "export") == PROBLEM
    known = {path for pattern in (*FILES, *FOLDERS) for path in before.matching(pattern)}
    known |= {before.semester, before.path / "roster.csv"}
    assert set(before.path.rglob("*")) == known


def test_the_document_names_every_file_of_the_folder(repository: Path) -> None:
    text = (repository / "docs" / "out_folder.md").read_text(encoding="utf-8")
    missing = [name for name in FILES if "*" not in name and f"`{name}`" not in text]
    folders = {pattern.partition("/")[0] for pattern in FOLDERS}
    missing += [name for name in folders if f"`{name}/" not in text]
    assert missing == []
    assert f"**Format {FORMAT}**" in text
