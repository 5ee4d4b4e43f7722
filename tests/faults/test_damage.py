"""Every file of a results folder is damaged in every way, and every command that reads it is run.

Either the result is as without the damage, or the command ends with a sentence that names the file
and the remedy. It never changes a grade, and never shows a traceback. `repair` brings back all that
leaves the folder.
"""

from __future__ import annotations

import csv
import io
import random
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.autograder.release_by_hand import LAB
from tests.autograder.results_by_hand import (
    Results,
    gradebook_rows,
    make_results,
    tables,
)

COMMANDS = {
    "export": (),
    "audit": (),
    "rejudge": (),
    "explain": ("ada", "lab05-batch_norm_gap"),
}
FILES = (
    *("taken.json", "shown.json", "waived.json", "published.json", "gradebook.db"),
    *("grades.csv", "needs_a_person.csv", "changes.csv", "nbgrader_config.py", ".gradebook.lock"),
    *("semester.toml", "roster.csv", f"journal/{LAB}/ada.entry", f"journal/{LAB}/lin.entry"),
    *(f"feedback/kim/{LAB}.html", f"autograded/ada/{LAB}/{LAB}.ipynb"),
    *(f"source/{LAB}/{LAB}.ipynb", "export/students.csv", "export/feedback.zip"),
)
GIVEN = {"semester.toml", "roster.csv"}  # the instructor's own, which nobody else can put back
LOG = {"changes.csv", "gradebook.db"}  # what is in no other file, but for copies


def cut(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: chance.randrange(1 + path.stat().st_size)])


def garbage(path: Path, chance: random.Random) -> None:
    path.write_bytes(chance.randbytes(1 + path.stat().st_size))


def another_version(path: Path, _chance: random.Random) -> None:
    if path.suffix != ".db":
        path.write_text('{"version": 99, "data": []}\n')
        return
    path.unlink()
    with closing(sqlite3.connect(path)) as book, book:
        book.execute("CREATE TABLE grade (id INTEGER, mark TEXT)")


def folder(path: Path, _chance: random.Random) -> None:
    path.unlink()
    path.mkdir()
    (path / "something").touch()


def missing(path: Path, _chance: random.Random) -> None:
    path.unlink()


HARMS: dict[str, Callable[[Path, random.Random], None]] = {
    harm.__name__: harm for harm in (cut, garbage, another_version, folder, missing)
}
SAMPLE = [
    (name, harm)
    for name in FILES
    for harm in HARMS
    if zlib.crc32(f"{name}{harm}".encode()) % 5 == 0
]
ALL = [(name, harm) for name in FILES for harm in HARMS]


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return make_results(tmp_path_factory.mktemp("results"))


@pytest.fixture
def copy(sound: Results, tmp_path: Path) -> Callable[[], Results]:
    """Makes one copy after another of the sound folder."""

    def make() -> Results:
        out = tmp_path / sound.out.name
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(sound.out, out)
        return Results(out, sound.root)

    return make


def rows_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


def assert_no_grade_changed(room: Results, sound: Results, harmed: str) -> None:
    """What is there of these tables is as it was; a submission may be missing."""
    before, now = tables(sound.out), tables(room.out)
    for name in {"grades.csv", "export/students.csv"} - {harmed}:
        assert all(row in rows_of(before[name]) for row in rows_of(now[name]))


def assert_as_sound(room: Results, sound: Results) -> None:
    before, now = tables(sound.out), tables(room.out)
    assert [name for name in before.keys() | now.keys() if before.get(name) != now.get(name)] == []
    assert gradebook_rows(room.out) == gradebook_rows(sound.out)


def check_commands(copy, sound, capsys, name: str, harm: str, seed: int = 0) -> None:
    for command, more in COMMANDS.items():
        room = copy()
        HARMS[harm](room.out / name, random.Random(f"{name}{harm}{seed}"))
        status = room.run(command, *more)
        said = capsys.readouterr().err
        where = f"{command} after {name} {harm} {seed}: {status} {said}"
        assert "Traceback" not in said, where
        assert "fault of the grader" not in said, where
        if status == 0:
            if command == "export" and name not in GIVEN:
                assert_as_sound(room, sound)
        else:
            assert len(set(said.splitlines())) <= 3, where
            assert Path(name).name in said or Path(name).parent.name in said, where
            assert any(
                remedy in said
                for remedy in (
                    "autograder --course",
                    "`autograder grade`",
                    "put it back",
                    "Put it back",
                    "autograder repair",
                )
            ), where
        assert_no_grade_changed(room, sound, name)


def check_repair(copy, sound, capsys, name: str, harm: str, seed: int = 0) -> None:
    room = copy()
    HARMS[harm](room.out / name, random.Random(f"{name}{harm}{seed}"))
    harmed = (room.out / name).read_bytes() if (room.out / name).is_file() else None
    status = room.run("repair")
    said = capsys.readouterr().err
    where = f"repair after {name} {harm} {seed}: {status} {said}"
    assert "Traceback" not in said, where
    assert "fault of the grader" not in said, where
    if name in GIVEN:
        assert status in (0, 2), where
    elif ".entry" in name:
        assert status in (0, 1), where
        assert status == 0 or Path(name).name in said, where
        assert_no_grade_changed(room, sound, name)
    else:
        assert status == 0, where
        assert_as_sound(room, sound)
        assert room.run("audit") == 0
    state = {path: path.read_bytes() for path in room.out.rglob("*") if path.is_file()}
    assert room.run("repair") == status, "it is idempotent"
    assert state == {path: path.read_bytes() for path in room.out.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("name", "harm"), SAMPLE)
def test_damage_is_survived_or_named(copy, sound, capsys, name: str, harm: str) -> None:
    check_commands(copy, sound, capsys, name, harm)


@pytest.mark.parametrize(("name", "harm"), SAMPLE)
def test_repair_brings_everything_back(copy, sound, capsys, name: str, harm: str) -> None:
    check_repair(copy, sound, capsys, name, harm)


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("name", FILES)
def test_every_damage_is_survived_named_and_repaired(copy, sound, capsys, name, harm) -> None:
    for seed in range(1 if harm in {"folder", "missing", "another_version"} else 4):
        check_commands(copy, sound, capsys, name, harm, seed)
        check_repair(copy, sound, capsys, name, harm, seed)
