"""Disks and locks: truncated files, missing or full disks, locks held by others."""

from __future__ import annotations

import fcntl
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.faulty import (
    assert_as_undisturbed,
    assert_disturbed,
    elsewhere,
    entry,
    grading,
    opens,
    until,
    without,
)
from tests.grading import LAB05, Class

LOCKED_SECONDS = 15.0
IMPATIENT = "from autograder.store import gradebook_file; gradebook_file._WAIT_SECONDS = 1"

# In a mount namespace of its own a small disk holds the class. A file fills it up to $1 bytes. The
# command runs, the file goes, the same command runs again; its results are copied off the disk.
FULL_DISK = """
out=$1 free=$2 kept=$3; shift 3
head -c 8000000 /dev/zero > "$out/ballast" 2>&-
truncate -s -"$free" "$out/ballast"
"$@"; first=$?
mkdir "$kept.first" && cp -a "$out/." "$kept.first" && rm "$kept.first/ballast" "$out/ballast"
"$@"; second=$?
cp -a "$out/." "$kept"
echo "statuses $first $second"
"""


@pytest.mark.slow
def test_entries_and_pages_that_are_cut_off_or_gone_are_made_again(
    undisturbed: Class, tmp_path: Path
) -> None:
    room = elsewhere(undisturbed, tmp_path, graded=True)
    cut = {
        student: entry(room, student).read_bytes()[:kept]
        for student, kept in (("right", -1), ("partly", 200), ("untouched", 0))
    }
    for student, data in cut.items():
        entry(room, student).write_bytes(data)
    (room.out / "feedback" / "no-json" / f"{LAB05}.html").unlink()
    (room.out / "autograded" / "missing" / LAB05 / f"{LAB05}.ipynb").unlink()
    (room.out / "grades.csv").unlink()
    assert_disturbed(room, undisturbed)
    done = room.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    assert_as_undisturbed(room, undisturbed)
    assert all(entry(room, student).read_bytes() != data for student, data in cut.items())
    whole = {path.name: path.stat().st_size for path in entry(undisturbed, "x").parent.iterdir()}
    made = {path.name: path.stat().st_size for path in entry(room, "x").parent.iterdir()}
    assert made.keys() == whole.keys()
    assert all(abs(made[name] - size) < 200 for name, size in whole.items())


@pytest.mark.slow
def test_a_gradebook_that_somebody_locks(undisturbed: Class, tmp_path: Path) -> None:
    room = elsewhere(undisturbed, tmp_path, graded=True)
    (room.out / "grades.csv").unlink()
    book = room.out / "gradebook.db"
    with closing(sqlite3.connect(book, isolation_level=None)) as other:
        other.execute("DELETE FROM comment")
        other.execute("UPDATE grade SET auto_score = 1")
        assert_disturbed(room, undisturbed)
        other.execute("BEGIN EXCLUSIVE")
        with grading(room) as command:
            until(lambda: opens(command.pid, book), command)
            threading.Event().wait(LOCKED_SECONDS)  # the fault itself
            assert command.poll() is None, "it waits"
            other.execute("ROLLBACK")
            _, said = command.communicate()
            assert command.returncode == 0, said
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
def test_control_who_does_not_wait_for_a_locked_gradebook_gives_up(
    undisturbed: Class, tmp_path: Path
) -> None:
    room = elsewhere(undisturbed, tmp_path, graded=True)
    (room.out / "grades.csv").unlink()
    with closing(sqlite3.connect(room.out / "gradebook.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with grading(room, command=without(IMPATIENT, room)) as command:
            _, said = command.communicate()
        other.execute("ROLLBACK")
    assert command.returncode == 2
    assert "gradebook.db can't be read or written: database is locked" in said
    assert_disturbed(room, undisturbed)
    done = room.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    assert_as_undisturbed(room, undisturbed)


def waits(pid: int) -> bool:
    """Whether this process waits for a file's lock that another one has."""
    return any(
        "->" in words and str(pid) in words
        for words in map(str.split, Path("/proc/locks").read_text().splitlines())
    )


@pytest.mark.slow
def test_one_command_waits_while_another_writes_the_gradebook(
    undisturbed: Class, tmp_path: Path
) -> None:
    room = elsewhere(undisturbed, tmp_path, graded=True)
    (room.out / "gradebook.db").unlink()
    lock = room.out / ".gradebook.lock"
    with lock.open("w") as other, grading(room) as command:
        fcntl.flock(other, fcntl.LOCK_EX)
        until(lambda: waits(command.pid), command)
        assert not (room.out / "gradebook.db").exists()
        fcntl.flock(other, fcntl.LOCK_UN)
        _, said = command.communicate()
        assert command.returncode == 0, said
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a mount namespace")
@pytest.mark.parametrize("part", [0.05, 0.5, 0.8], ids=["pages", "entries", "gradebook"])
def test_a_full_disk(undisturbed: Class, room: Class, tmp_path: Path, part: float) -> None:
    room.out.mkdir()
    kept = elsewhere(undisturbed, tmp_path / "kept")
    free = int(part * _disk_bytes(undisturbed.out))
    arguments = (str(room.out), str(free), str(kept.out))
    small = ("bwrap", "--dev-bind", "/", "/", "--size", "8000000", "--tmpfs", str(room.out))
    done = room.grade(
        "--workers", "2", around=(*small, "bash", "-c", FULL_DISK, "bash", *arguments)
    )
    assert "statuses 2 0" in done.stdout, done.stderr
    assert "No space left on device" in done.stderr or "disk is full" in done.stderr
    assert "Free some space on the disk" in done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert not list(room.out.iterdir()), "the disk was the namespace's own"
    assert_as_undisturbed(kept, undisturbed)
    kept.out.rename(tmp_path / "mended")
    (tmp_path / "kept" / "out.first").rename(kept.out)
    assert_disturbed(kept, undisturbed)


def _disk_bytes(folder: Path) -> int:
    done = subprocess.run(["du", "-sB1", folder], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


@pytest.mark.slow
def test_a_class_that_changes_between_runs(undisturbed: Class, regraded: Class) -> None:
    """Other submissions under the same names leave nothing of the old ones behind."""
    room = regraded
    assert_disturbed(room, undisturbed)
    done = room.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["row", "twice", "byte", "score", "comment", "page", "entry"])
def test_control_the_comparison_sees_every_harm(
    undisturbed: Class, tmp_path: Path, harm: str
) -> None:
    room = elsewhere(undisturbed, tmp_path, graded=True)
    assert_as_undisturbed(room, undisturbed)
    table = room.out / "grades.csv"
    lines = table.read_bytes().splitlines(keepends=True)
    page = room.out / "feedback" / "right" / f"{LAB05}.html"
    if harm in {"row", "twice", "byte"}:
        other = {"row": lines[:-1], "twice": [*lines, lines[-1]], "byte": [*lines, b"\n"]}
        table.write_bytes(b"".join(other[harm]))
    elif harm == "page":
        page.write_bytes(page.read_bytes().replace(b"right", b"wrong", 1))
    elif harm == "entry":
        shutil.copy(entry(room, "right"), entry(room, "nobody"))
    else:
        change = {
            "score": "UPDATE grade SET needs_manual_grade = NOT needs_manual_grade",
            "comment": "DELETE FROM comment WHERE id = (SELECT max(id) FROM comment)",
        }[harm]
        with closing(sqlite3.connect(room.out / "gradebook.db")) as book, book:
            book.execute(change)
    assert_disturbed(room, undisturbed)
