"""Faults on one machine. The same command again ends with the grades of a run without faults."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.faults.faulty import (
    asleep,
    assert_as_undisturbed,
    elsewhere,
    entry,
    grading,
    sleeper,
    until,
    workers,
)
from tests.grading import LAB05, Class

LOCKED_SECONDS = 15.0


def test_a_worker_and_the_controller_killed_in_one_run(undisturbed: Class, tmp_path: Path) -> None:
    room = elsewhere(undisturbed, tmp_path)
    with grading(room) as command:
        until(lambda: asleep(command.pid), command).kill()  # in a cell
        until((room.out / "gradebook.db").exists, command)
        command.kill()  # in the merge
    assert not (room.out / "grades.csv").exists()
    done = room.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    assert_as_undisturbed(room, undisturbed)


def test_entries_and_pages_that_are_cut_off_or_gone_are_made_again(
    undisturbed: Class, tmp_path: Path
) -> None:
    room = elsewhere(undisturbed, tmp_path)
    subprocess.run(["cp", "-a", undisturbed.out, room.out], check=True)
    for student, kept in (("right", -1), ("partly", 200), ("untouched", 0)):
        path = entry(room, student)
        path.write_bytes(path.read_bytes()[:kept])
    (room.out / "feedback" / "no-json" / f"{LAB05}.html").unlink()
    (room.out / "autograded" / "missing" / LAB05 / f"{LAB05}.ipynb").unlink()
    (room.out / "grades.csv").unlink()
    done = room.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
def test_a_worker_killed_between_result_and_commit(undisturbed: Class, tmp_path: Path) -> None:
    """Its page is written just before; the student had handed in other work before that."""
    room = elsewhere(undisturbed, tmp_path)
    page = room.out / "feedback" / "partly" / f"{LAB05}.html"
    with grading(room) as command:
        until(page.exists, command)
        for worker in workers(command.pid):
            worker.kill()
        command.communicate()
        assert command.returncode == 0
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
def test_two_commands_at_once_grade_the_same_class(undisturbed: Class, tmp_path: Path) -> None:
    room = elsewhere(undisturbed, tmp_path)
    with grading(room) as one, grading(room) as other:
        said = [command.communicate()[1] for command in (one, other)]
        assert (one.returncode, other.returncode) == (0, 0), said
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
def test_a_gradebook_that_somebody_locks(undisturbed: Class, tmp_path: Path) -> None:
    room = elsewhere(undisturbed, tmp_path)
    room.out.mkdir()
    subprocess.run(["cp", undisturbed.out / "gradebook.db", room.out], check=True)
    with (
        closing(sqlite3.connect(room.out / "gradebook.db", isolation_level=None)) as other,
        grading(room) as command,
    ):
        other.execute("BEGIN EXCLUSIVE")
        until(lambda: _opens(command.pid, room.out / "gradebook.db"), command)
        threading.Event().wait(LOCKED_SECONDS)  # the fault itself
        assert command.poll() is None, "it waits"
        other.execute("ROLLBACK")
        command.communicate()
        assert command.returncode == 0
    assert_as_undisturbed(room, undisturbed)


def _opens(pid: int, path: Path) -> bool:
    return any(Path(file.path) == path for file in psutil.Process(pid).open_files())


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small disk to fill up")
def test_a_full_disk(undisturbed: Class, tmp_path: Path) -> None:
    room = elsewhere(undisturbed, tmp_path)
    room.out.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", room.out], check=True)
    try:
        done = room.grade("--workers", "2")
        assert done.returncode == 2
        assert "No space left on device" in done.stderr
        subprocess.run(["mount", "-o", "remount,size=64m", room.out], check=True)
        done = room.grade("--workers", "2")
        assert done.returncode == 0, done.stderr
        assert_as_undisturbed(room, undisturbed)
    finally:
        subprocess.run(["umount", room.out], check=True)


@pytest.mark.slow
def test_a_worker_that_runs_out_of_memory(undisturbed: Class, tmp_path: Path) -> None:
    room = elsewhere(undisturbed, tmp_path)
    with grading(room) as command:
        worker = until(lambda: asleep(command.pid), command)
        worker.rlimit(resource.RLIMIT_AS, (2**20, 2**20))
        command.communicate()
        assert command.returncode == 0
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
def test_a_submission_that_kills_every_worker_stops_nobody_else(
    undisturbed: Class, tmp_path: Path
) -> None:
    room = elsewhere(undisturbed, tmp_path)
    with grading(room) as command:
        for _ in range(2):
            victim = until(lambda: asleep(command.pid), command)
            victim.kill()
            victim.wait()
        _, said = command.communicate()
        assert command.returncode == 1
    assert "a-slow-one" in said
    assert "killed by signal 9" in said
    assert room.row("a-slow-one")["status"] == "failed"
    assert room.row("right") == undisturbed.row("right")
    done = room.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
def test_control_c_stops_cleanly_and_the_same_command_goes_on(
    undisturbed: Class, tmp_path: Path
) -> None:
    room = elsewhere(undisturbed, tmp_path)
    with grading(room) as command:
        until(lambda: sleeper(command.pid), command)
        below = psutil.Process(command.pid).children(recursive=True)
        command.send_signal(signal.SIGINT)
        _, said = command.communicate()
        assert command.returncode == 130
        assert "The same command goes on from here." in said
    assert psutil.wait_procs(below, timeout=60)[1] == []
    assert room.grade("--workers", "2").returncode == 0
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
def test_grades_made_under_other_limits_are_named_and_made_again(
    undisturbed: Class, tmp_path: Path
) -> None:
    room = elsewhere(undisturbed, tmp_path)
    subprocess.run(["cp", "-a", undisturbed.out, room.out], check=True)
    done = room.grade("--workers", "2", "--memory-gib", "1")
    assert done.returncode == 0, done.stderr
    assert "7 of the grades were made under other limits (memory_bytes" in done.stderr
    again = room.grade("--workers", "2", "--memory-gib", "1")
    assert "other limits" not in again.stderr
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
def test_a_class_that_changes_between_runs(undisturbed: Class, tmp_path: Path) -> None:
    """Other work handed in under the same names leaves no page of the old work behind."""
    room = elsewhere(undisturbed, tmp_path)
    right = room.submitted / "right" / LAB05 / f"{LAB05}.ipynb"
    kept = right.read_bytes()
    right.write_bytes((room.submitted / "untouched" / LAB05 / f"{LAB05}.ipynb").read_bytes())
    assert room.grade("--workers", "2").returncode == 0
    right.write_bytes(kept)
    assert room.grade("--workers", "2").returncode == 0
    assert_as_undisturbed(room, undisturbed)
