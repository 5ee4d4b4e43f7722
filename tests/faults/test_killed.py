"""Killed processes on one machine: repeating the command gives what an undisturbed run gives."""

from __future__ import annotations

import resource
import signal
import sqlite3
import subprocess
from contextlib import closing

import psutil
import pytest

from tests.faults.faulty import (
    asleep,
    assert_as_undisturbed,
    assert_disturbed,
    entry,
    grading,
    is_stuck,
    leased,
    opens,
    sleeper,
    until,
    without,
    workers,
)
from tests.grading import LAB05, Class

ONE_TRY = "from autograder.base import pool; pool.TRIES = 1"
# Workers are forked from a process that loads what the controller names.
PAGES_LAST = """
from autograder.runs import classroom
classroom.__name__ = "tests.faults.pages_last"
"""


def finish(room: Class, reference: Class) -> None:
    """Give the same command again, and see that all is as without the fault."""
    done = room.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    assert_as_undisturbed(room, reference)


@pytest.mark.slow
def test_a_worker_killed_in_a_cell_and_the_controller_in_the_merge(
    undisturbed: Class, room: Class
) -> None:
    subprocess.run(["cp", "-a", undisturbed.out, room.out], check=True)
    entry(room, "a-slow-one").unlink()
    for lost in ("gradebook.db", "grades.csv"):
        (room.out / lost).unlink()
    with grading(room) as command:
        until(lambda: asleep(command.pid), command).kill()
        until((room.out / "gradebook.db").exists, command)
        command.kill()
    assert entry(room, "a-slow-one").exists(), "another worker did it"
    assert_disturbed(room, undisturbed)
    finish(room, undisturbed)


@pytest.mark.slow
def test_every_grading_process_killed_in_a_cell(undisturbed: Class, room: Class) -> None:
    with grading(room) as command:
        until(lambda: asleep(command.pid), command)
        for worker in workers(command.pid):
            worker.kill()
        _, said = command.communicate()
        assert command.returncode == 0, said
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
def test_control_without_another_try_a_killed_worker_leaves_a_gap(
    undisturbed: Class, room: Class
) -> None:
    with grading(room, command=without(ONE_TRY, room)) as command:
        until(lambda: asleep(command.pid), command).kill()
        command.communicate()
        assert command.returncode == 1
    assert_disturbed(room, undisturbed)
    finish(room, undisturbed)


@pytest.mark.slow
def test_the_process_that_workers_are_forked_from_killed_in_a_cell(
    undisturbed: Class, room: Class
) -> None:
    with grading(room) as command:
        server = until(lambda: asleep(command.pid), command).parent()
        assert server is not None
        server.kill()
        until(lambda: asleep(command.pid), command).kill()  # whose place needs a new one
        _, said = command.communicate()
        assert command.returncode == 0, said
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["outermost", "innermost"])
def test_a_sandbox_killed_in_a_cell(undisturbed: Class, room: Class, level: str) -> None:
    """Like a system without memory left: no student's fault."""
    with grading(room) as command:
        worker = until(lambda: asleep(command.pid), command)
        (outermost,) = worker.children()
        innermost = next(
            process
            for process in outermost.children(recursive=True)
            if "autograder.sandbox.guest.server" in process.cmdline() and process.name() != "bwrap"
        )
        {"outermost": outermost, "innermost": innermost}[level].kill()
        _, said = command.communicate()
        assert command.returncode == 0, said
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
def test_a_worker_that_runs_out_of_memory(undisturbed: Class, room: Class) -> None:
    with grading(room) as command:
        worker = until(lambda: asleep(command.pid), command)
        worker.rlimit(resource.RLIMIT_AS, (2**20, 2**20))
        _, said = command.communicate()
        assert command.returncode == 0, said
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("guard", "mended"), [("", True), (PAGES_LAST, False)], ids=["as it is", "control"]
)
def test_all_killed_between_result_and_commit(
    undisturbed: Class, regraded: Class, guard: str, mended: bool
) -> None:
    """The entry is written last. If the pages were, a kill would leave old pages behind."""
    room = regraded
    page = room.out / "feedback" / "a-slow-one" / f"{LAB05}.html"
    with grading(room, command=without(guard, room)) as command:
        until(lambda: asleep(command.pid), command)
        with leased(entry(room, "a-slow-one") if mended else page) as lease:
            until(lambda: is_stuck(lease), command)
            pages = page.read_bytes() if mended else b""
            for process in [psutil.Process(command.pid), *workers(command.pid)]:
                process.kill()
    assert_disturbed(room, undisturbed)
    if mended:
        assert pages == (undisturbed.out / page.relative_to(room.out)).read_bytes()
        finish(room, undisturbed)
    else:
        assert room.grade("--workers", "2").returncode == 0
        assert_disturbed(room, undisturbed)


@pytest.mark.slow
def test_the_controller_killed_before_and_after_the_gradebook_is_written(
    undisturbed: Class, regraded: Class
) -> None:
    room = regraded
    book = room.out / "gradebook.db"
    with closing(sqlite3.connect(book, isolation_level=None)) as other, grading(room) as command:
        until(lambda: sleeper(command.pid), command)
        other.execute("BEGIN IMMEDIATE")  # others can read but not write
        until(lambda: opens(command.pid, book), command)
        command.kill()
    assert_disturbed(room, undisturbed)
    with leased(room.out / "grades.csv") as lease, grading(room) as command:
        until(lambda: is_stuck(lease), command)
        command.kill()
    assert_disturbed(room, undisturbed)
    finish(room, undisturbed)


@pytest.mark.slow
def test_the_controller_killed_in_the_middle_of_a_transaction(
    undisturbed: Class, regraded: Class
) -> None:
    with grading(regraded) as command:
        until((regraded.out / "gradebook.db-journal").exists, command)
        command.kill()
    assert_disturbed(regraded, undisturbed)
    finish(regraded, undisturbed)


@pytest.mark.slow
def test_a_submission_that_kills_every_worker_stops_nobody_else(
    undisturbed: Class, room: Class
) -> None:
    with grading(room) as command:
        for _ in range(2):
            victim = until(lambda: asleep(command.pid), command)
            victim.kill()
            victim.wait()
        _, said = command.communicate()
        assert command.returncode == 1
    assert "a-slow-one" in said
    assert "killed by signal 9" in said
    assert room.row("a-slow-one")["status"] == "grading failed"
    assert room.row("right") == undisturbed.row("right")
    assert_disturbed(room, undisturbed)
    finish(room, undisturbed)


@pytest.mark.slow
def test_a_straggler_is_stopped_and_its_submission_done_by_another(
    undisturbed: Class, room: Class
) -> None:
    """A stopped process is deaf. The limit of twenty minutes is two here."""
    short = "from autograder.runs import classroom; classroom._SPARE_SECONDS = -780.0"
    with grading(room, command=without(short, room)) as command:
        worker = until(lambda: asleep(command.pid), command)
        worker.send_signal(signal.SIGSTOP)
        _, said = command.communicate()
        assert command.returncode == 0, said
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
def test_two_commands_at_once_grade_the_same_class(undisturbed: Class, room: Class) -> None:
    with grading(room) as one, grading(room) as other:
        until(lambda: asleep(one.pid), one)
        until(lambda: asleep(other.pid), other)
        said = [command.communicate()[1] for command in (one, other)]
        assert (one.returncode, other.returncode) == (0, 0), said
    assert_as_undisturbed(room, undisturbed)
