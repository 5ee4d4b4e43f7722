"""Every file of a results folder is damaged in every way, and every command that reads it is run.

Either the result is as without the damage, or the command ends with a sentence that names the file
and the remedy. It never changes a grade, and never shows a traceback. `repair` restores everything
published from the folder.
"""

from __future__ import annotations

import csv
import fcntl
import io
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.base.damage import Damaged
from autograder.base.files import drop_drafts
from autograder.cli.app import main
from autograder.model.submission import SubmissionKey
from autograder.publish.publishing import publish
from autograder.rules.semester import read_semester
from autograder.runs.attempts import settle_again
from autograder.runs.room import Classroom
from autograder.store.journal import Journal
from autograder.store.manual_backup import manual_in
from autograder.store.out_folder import OutFolder
from autograder.store.published import published
from autograder.store.roll import note_taken
from autograder.store.small_files import COUNTED, SMALL_FILES, WAIVED
from tests.autograder.small_class import DOUBLE, EXPLAIN, graded, make_course
from tests.autograder.small_release import LAB
from tests.autograder.small_results import (
    TERMS,
    Results,
    give_points,
    gradebook_rows,
    make_results,
    tables,
)
from tests.grading import command_environment

COMMANDS = {
    "export": (),
    "audit": (),
    "rejudge": (),
    "explain": ("ada", "lab05-batch_norm_gap"),
}
FILES = (
    *("format.json", "taken.json", "shown.json", "waived.json", "published.json", "gradebook.db"),
    *("grades.csv", "manual_review.csv", "changes.csv", "nbgrader_config.py", ".gradebook.lock"),
    *("semester.toml", "roster.csv", f"journal/{LAB}/ada.entry", f"journal/{LAB}/lin.entry"),
    *(f"feedback/kim/{LAB}.html", f"autograded/ada/{LAB}/{LAB}.ipynb"),
    *(f"source/{LAB}/{LAB}.ipynb", "export/students.csv", "export/feedback.zip"),
)
CHOSEN = b'{"lab05_accumulation": {"ada": {"folder": "a", "percent_off": 5, "received": ""}}}'
GIVEN = {"semester.toml", "roster.csv"}  # the instructor's own, which only they can restore
ADA, KIM = SubmissionKey("ada", LAB), SubmissionKey("kim", LAB)


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
ALL = [(name, harm) for name in FILES for harm in HARMS]
SAMPLE = [pair for pair in ALL if zlib.crc32("".join(pair).encode()) % 16 == 0]
REMEDIES = (
    *("`autograder --course", "`autograder repair", "run `autograder grade` again"),
    *("ut it back", "save it as", "expected a column", "restore it from a backup"),
)


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return make_results(tmp_path_factory.mktemp("results"))


@pytest.fixture(autouse=True)
def nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())


@pytest.fixture
def copy(sound: Results, tmp_path: Path) -> Callable[[], Results]:
    """Makes one copy after another of the sound folder."""

    def make() -> Results:
        out = tmp_path / sound.out.name
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(sound.out, out)
        return Results(out, sound.course)

    return make


def rows_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


def assert_no_grade_changed(room: Results, sound: Results, harmed: str) -> None:
    """The rows left in these tables are unchanged; a submission may be missing."""
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
        assert "bug in the grader" not in said, where
        if status == 0:
            if command == "export" and name not in GIVEN:
                assert_as_sound(room, sound)
        else:
            sentences = [line for line in said.splitlines() if "another version of" not in line]
            assert len(sentences) <= 2 or command == "audit", where
            assert Path(name).name in said or Path(name).parent.name in said, where
            assert any(remedy in said for remedy in REMEDIES), where
        if name not in GIVEN:
            assert_no_grade_changed(room, sound, name)


def check_repair(copy, sound, capsys, name: str, harm: str, seed: int = 0) -> None:
    room = copy()
    HARMS[harm](room.out / name, random.Random(f"{name}{harm}{seed}"))
    status = room.run("repair")
    said = capsys.readouterr().err
    where = f"repair after {name} {harm} {seed}: {status} {said}"
    assert "Traceback" not in said, where
    assert "bug in the grader" not in said, where
    if name in GIVEN:
        assert status in (0, 2), where
    elif ".entry" in name:
        assert status in (0, 1), where
        assert status == 0 or Path(name).name in said, where
        assert_no_grade_changed(room, sound, name)
    else:
        unread = (name, harm) == ("gradebook.db", "folder")  # its last copy may lack grades
        assert status == unread, where
        assert ("enter again in Formgrader" in said) == unread, where
        assert_as_sound(room, sound)
        assert room.run("audit") == 0
        capsys.readouterr()
    state = {path: path.read_bytes() for path in room.out.rglob("*") if path.is_file()}
    still_lost = status if name in GIVEN or ".entry" in name else 0
    assert room.run("repair") == still_lost, "it is idempotent"
    capsys.readouterr()
    assert state == {path: path.read_bytes() for path in room.out.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("name", "harm"), SAMPLE)
def test_damage_is_survived_or_named(copy, sound, capsys, name: str, harm: str) -> None:
    check_commands(copy, sound, capsys, name, harm)


@pytest.mark.parametrize(("name", "harm"), SAMPLE)
def test_repair_brings_everything_back(copy, sound, capsys, name: str, harm: str) -> None:
    check_repair(copy, sound, capsys, name, harm)


@pytest.mark.parametrize("command", ["export", "repair"])
def test_a_journal_that_is_gone_empties_no_table(copy, capsys, command: str) -> None:
    room = copy()
    before = tables(room.out)
    shutil.rmtree(room.out / "journal")
    assert room.run(command) == 2
    assert f"restore {room.out}/journal from a backup" in capsys.readouterr().err
    assert tables(room.out) == before


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("name", FILES)
def test_every_damage_is_survived_named_and_repaired(copy, sound, capsys, name, harm) -> None:
    for seed in range(1 if harm in {"folder", "missing", "another_version"} else 4):
        check_commands(copy, sound, capsys, name, harm, seed)
        check_repair(copy, sound, capsys, name, harm, seed)


@pytest.mark.parametrize("small", SMALL_FILES, ids=lambda small: small.name)
def test_a_small_file_cut_at_any_length_is_told_from_a_whole_one(sound: Results, tmp_path, small):
    whole = small.path(OutFolder(sound.out)).read_bytes() if small is not COUNTED else CHOSEN
    path = small.path(OutFolder(tmp_path))
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(Damaged, match=small.name):
            small.read(OutFolder(tmp_path))
    path.write_bytes(whole)
    assert small.read(OutFolder(tmp_path))


def test_the_record_cut_at_any_length_is_told_from_a_whole_one(sound: Results, tmp_path) -> None:
    whole = (sound.out / "published.json").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "published.json").write_bytes(whole[:length])
        with pytest.raises(Damaged, match=r"published\.json"):
            published(OutFolder(tmp_path))


def test_an_entry_with_any_byte_changed_gives_no_other_grade(sound: Results, tmp_path) -> None:
    whole, journal = OutFolder(sound.out).entry(KIM).read_bytes(), Journal(OutFolder(tmp_path))
    first = len(whole.partition(b"\n")[0])
    path = OutFolder(tmp_path).entry(KIM)
    path.parent.mkdir(parents=True)
    sound_result = Journal(OutFolder(sound.out)).verdicts(KIM)
    for place in range(first + 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert journal.verdicts(KIM) in (None, sound_result)


def test_control_without_the_seal_a_changed_byte_is_another_grade(
    sound: Results, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("autograder.store.journal._seal", lambda _head: "the same for all")
    journal = Journal(OutFolder(tmp_path))
    result = Journal(OutFolder(sound.out)).verdicts(KIM)
    assert result is None, "the sealed entry is none to who seals otherwise"
    journal.keep(graded("kim"), b"", {}, {})
    path = OutFolder(tmp_path).entry(KIM)
    path.write_bytes(path.read_bytes().replace(b'"value": 1.5', b'"value": 1.0', 1))
    assert journal.verdicts(KIM) != replace(graded("kim"), notebook=None)


def test_the_files_are_all_that_a_results_folder_has(sound: Results) -> None:
    there = {str(path.relative_to(sound.out)) for path in sound.out.rglob("*") if path.is_file()}
    kinds = {Path(name).parts[0] for name in there}
    assert kinds == {Path(name).parts[0] for name in FILES}


@pytest.mark.parametrize("place", ["", "export", f"journal/{LAB}", "feedback/ada", f"source/{LAB}"])
def test_drafts_of_a_killed_command_are_removed_and_never_leave(copy, sound, place: str) -> None:
    room = copy()
    draft = room.out / place / ".students.csv.0123456789abcdef"
    draft.write_text("half a tab")
    assert room.run("export") == 0
    assert_as_sound(room, sound)
    assert not draft.exists()


def test_a_draft_that_is_being_written_stays(copy) -> None:
    room = copy()
    held, begun = (room.out / f".x.{digit * 16}" for digit in "12")
    begun.touch()
    with held.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(b"half")
        file.flush()
        drop_drafts(room.out)
        assert held.exists()
        assert begun.exists()
    drop_drafts(room.out)
    assert not held.exists()


def test_a_lost_gradebook_gets_its_manual_grades_back(copy, sound) -> None:
    room = copy()
    (room.out / "gradebook.db").unlink()
    assert room.run("export") == 0
    assert_as_sound(room, sound)


@pytest.mark.slow
def test_manual_grades_given_since_are_read_out_of_half_a_gradebook(copy, capsys) -> None:
    room = copy()
    give_points(room.out, "kim", EXPLAIN, 0.5, "Too short.")
    book = room.out / "gradebook.db"
    book.write_bytes(book.read_bytes()[:-4096])
    assert room.run("audit") == 2
    assert f"{book} is damaged" in capsys.readouterr().err
    assert room.run("repair") == 1
    assert "has 0.5 points for lab05-explain, and its last copy none" in capsys.readouterr().err
    manual = manual_in(OutFolder(room.out))
    assert manual[KIM].points == {DOUBLE: 1.25, EXPLAIN: 0.5}
    assert manual[KIM].again == [EXPLAIN]
    assert manual[ADA].comments == {EXPLAIN: "Well said."}
    assert (room.out / "damaged" / "gradebook.db").is_file()


def test_manual_grades_wait_for_a_submission_that_lost_its_entry(copy, sound, capsys) -> None:
    room = copy()
    entry = OutFolder(room.out).entry(ADA)
    whole = entry.read_bytes()
    entry.write_bytes(b"")
    (room.out / "gradebook.db").write_bytes(b"")
    assert room.run("repair") == 1
    assert "ada.entry has no grade of ada any more" in capsys.readouterr().err
    assert ("ada", LAB) not in manual_in(OutFolder(room.out))
    entry.write_bytes(whole)  # as grading again does
    assert room.run("export") == 0
    assert_as_sound(room, sound)


def test_waivers_are_not_lost_with_their_file(copy, sound, capsys) -> None:
    room = copy()
    WAIVED.path(OutFolder(room.out)).unlink()
    assert room.run("export") == 2
    said = capsys.readouterr().err
    assert f"{WAIVED.path(OutFolder(room.out))} is missing" in said
    assert "repair" in said
    assert room.run("repair") == 0
    assert_as_sound(room, sound)


@pytest.mark.parametrize("command", ["export", "audit", "rejudge", "explain", "repair"])
def test_a_folder_that_nothing_was_graded_into_is_told_so(tmp_path, capsys, command: str) -> None:
    (tmp_path / "empty").mkdir()
    more = COMMANDS.get(command, ())
    assert main([command, str(tmp_path / "empty"), *more]) in (1, 2)
    assert "autograder grade" in capsys.readouterr().err


NO_OVERRIDE = "-dac_override,-dac_read_search"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="takes capabilities away")
@pytest.mark.parametrize("name", ["taken.json", "gradebook.db", f"journal/{LAB}/ada.entry"])
def test_a_file_that_nobody_may_read_is_named(copy, name: str) -> None:
    room = copy()
    (room.out / name).chmod(0)
    less = ("setpriv", f"--bounding-set={NO_OVERRIDE}", f"--inh-caps={NO_OVERRIDE}")
    for command, status in (("audit", 2), ("repair", 0 if name == "taken.json" else 1)):
        done = subprocess.run(
            [
                *(less if os.getuid() == 0 else ()),
                *(
                    sys.executable,
                    "-m",
                    "autograder",
                    "--course",
                    room.course.root,
                    command,
                    room.out,
                ),
            ],
            env=command_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        assert status == 0 or Path(name).name in done.stderr


@pytest.mark.slow
def test_control_without_the_record_a_lost_gradebook_loses_manual_grades(copy, sound) -> None:
    room = copy()
    (room.out / "gradebook.db").unlink()
    (room.out / "published.json").unlink()
    assert room.run("export") == 0
    assert manual_in(OutFolder(room.out)) == {}
    assert manual_in(OutFolder(sound.out)) != {}


# Stops the command before the step of this number that changes a file, as a power cut would.
KILLED_AT = """
import os, sys
from pathlib import Path
steps = int(sys.argv.pop(1))
def counting(change):
    def step(*arguments, **options):
        global steps
        steps -= 1
        if steps < 0:
            os.kill(os.getpid(), 9)
        return change(*arguments, **options)
    return step
for name in ("replace", "rename", "unlink"):
    setattr(Path, name, counting(getattr(Path, name)))
from autograder.cli.app import main
raise SystemExit(main())
"""


@pytest.mark.slow
def test_repair_killed_at_any_step_is_done_by_the_next_one(copy, sound) -> None:
    begun, step = 0, 0
    while True:
        room = copy()
        for name in ("taken.json", "waived.json", "gradebook.db", "grades.csv"):
            (room.out / name).write_bytes(b"garbage")
        arguments = ("--course", str(room.course), "repair", str(room.out))
        done = subprocess.run(
            [sys.executable, "-c", KILLED_AT, str(step), *arguments],
            env=command_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            break
        assert done.returncode == -9, done.stderr
        begun += (room.out / "damaged").is_dir()
        assert room.run("repair") == 0, f"after step {step}"
        assert_as_sound(room, sound)
        step += 1
    assert begun > 4


RULES = f"""receipts = "receipts.csv"
[due]
{LAB} = 2026-11-20T12:00:00+00:00
[late]
percent_per_day = 10
"""
RECEIPTS = f"""student,lab,received,folder
ada,{LAB},2026-11-19T12:00:00+00:00,first
ada,{LAB},2026-11-21T11:00:00+00:00,second
kim,{LAB},2026-11-19T12:00:00+00:00,first
"""


@pytest.fixture(scope="module")
def attempted(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A class with attempts, of which the last counts; ada's was a day late."""
    folder = tmp_path_factory.mktemp("attempted")
    course, out = make_course(folder / "course"), folder / "graded" / "out"
    course.secret()
    out.mkdir(parents=True)
    (out / "semester.toml").write_text(RULES)
    (out / "receipts.csv").write_text(RECEIPTS)
    for attempt, students in (("first", ("ada", "kim")), ("second", ("ada",))):
        own = out / "attempts" / attempt
        note_taken(OutFolder(own), LAB, students)
        for student in students:
            Journal(OutFolder(own)).keep(graded(student), attempt.encode(), {}, TERMS)
    assert (
        settle_again(
            Classroom(LAB, OutFolder(out), course, b""), read_semester(OutFolder(out), course)
        )
        == []
    )
    publish(OutFolder(out), course)
    results = Results(out, course)
    assert results.run("export") == 0
    return results


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["counted", "record too", "chosen entry", "attempt's list"])
def test_what_counts_among_attempts_is_chosen_again(attempted, tmp_path, capsys, harm) -> None:
    out = tmp_path / "out"
    shutil.copytree(attempted.out, out)
    room = Results(out, attempted.course)
    if harm == "chosen entry":
        OutFolder(out).entry(ADA).write_bytes(b"garbage")
    elif harm == "attempt's list":
        (out / "attempts" / "second" / "taken.json").write_bytes(b"[")
    else:
        COUNTED.path(OutFolder(out)).unlink()
    if harm == "record too":
        (out / "published.json").unlink()
    assert room.run("export") in (1, 2)
    assert "repair" in capsys.readouterr().err or harm == "chosen entry"
    assert room.run("repair") == 0, capsys.readouterr().err
    assert_as_sound(room, attempted)
    assert COUNTED.read(out)[LAB]["ada"]["percent_off"] == 10
    assert COUNTED.read(out) == COUNTED.read(attempted.out)
