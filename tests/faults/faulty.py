"""A class that faults are injected into while the real command grades it, and how to inject them.

Every fault is real: signals, full disks, locks. Tests wait for an event that they can see from
outside, a process, a file or a lock, never for a time.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from shutil import copytree
from typing import Any, TypeVar

import psutil

from autograder.publish.audit import audit
from autograder.store.out_folder import OutFolder
from tests.grading import (
    LAB05,
    SEARCH,
    Class,
    cell_of,
    code_cell,
    command_environment,
    released,
    solved,
)

__all__ = [
    "SLEEP",
    "asleep",
    "assert_as_undisturbed",
    "assert_disturbed",
    "elsewhere",
    "entry",
    "gradebook",
    "grading",
    "hand_in_all",
    "is_stuck",
    "leased",
    "opens",
    "sleeper",
    "until",
    "without",
    "workers",
]

SLEEP = "2.625"  # seconds that one student's cell takes; the number tells its process from others
LINEAR = """
def largest_micro_batch(run, upper):
    for m in range(upper):
        try: run(m + 1)
        except peakmem.OutOfMemory: return m
    return upper
"""
Seen = TypeVar("Seen")


def hand_in_all(room: Class) -> None:
    """Correct, partially correct and incorrect work, an invalid notebook, one with a slow cell."""
    room.hand_in("right", solved())
    room.hand_in("untouched", released())
    partly = released()
    cell_of(partly, f"{SEARCH}-solution")["source"] = LINEAR
    room.hand_in("partly", partly)
    waits = solved()
    source = f"import subprocess; subprocess.run(['sleep', '{SLEEP}'])"
    waits["cells"].insert(4, code_cell(source) | {"id": "slow"})
    room.hand_in("a-slow-one", waits)
    whole = room.hand_in("cut-off", solved())
    whole.write_bytes(whole.read_bytes()[:5000])
    room.hand_in("no-json", b"\x00\xff" * 100)
    room.hand_in("missing", b"").unlink()


def elsewhere(room: Class, folder: Path, *, graded: bool = False) -> Class:
    """The same submissions and the same course, with an out folder of their own.

    That holds nothing yet, or what `room`'s holds.
    """
    copytree(room.submitted, folder / "submitted")
    if graded:
        subprocess.run(["cp", "-a", room.out, folder / "out"], check=True)
    return Class(folder, room.course, room.lab)


def assert_as_undisturbed(room: Class, reference: Class) -> None:
    """No student is missing or duplicated, and everything is as in a run without faults."""
    assert audit(OutFolder(room.out)) == []
    keys = [(row["student"], row["task"]) for row in room.rows()]
    assert len(keys) == len(set(keys))
    assert (room.out / "grades.csv").read_bytes() == (reference.out / "grades.csv").read_bytes()
    assert gradebook(room) == gradebook(reference)
    for derived in ("feedback/**/*.html", "autograded/**/*.ipynb", "journal/**/*.entry"):
        found, expected = (
            {path.relative_to(of.out): path.read_bytes() for path in of.out.glob(derived)}
            for of in (room, reference)
        )
        assert sorted(found) == sorted(expected)
        if not derived.startswith("journal"):  # whose answers have bytes measured from outside
            assert found == expected


def assert_disturbed(room: Class, reference: Class) -> None:
    """The fault did harm, which the same command has to repair."""
    try:
        assert_as_undisturbed(room, reference)
    except (AssertionError, FileNotFoundError, sqlite3.Error):
        return
    raise AssertionError("everything is as in a run without faults")


def gradebook(room: Class) -> dict[str, list[tuple[Any, ...]]]:
    """The contents of nbgrader's database, table by table, without its random ids and times.

    It is read without the grader's own code, and without nbgrader's.
    """
    submission = (
        "submitted_assignment s JOIN assignment a ON s.assignment_id = a.id "
        "JOIN submitted_notebook n ON n.assignment_id = s.id"
    )
    what = {
        "students": "SELECT * FROM student",
        "cells": "SELECT c.name, c.type, g.max_score, s.source, s.checksum FROM base_cell c "
        "LEFT JOIN grade_cells g ON g.id = c.id "
        "LEFT JOIN source_cell s ON s.name = c.name AND s.notebook_id = c.notebook_id",
        "submissions": "SELECT s.student_id, a.name, b.name, n.late_submission_penalty "
        f"FROM {submission} JOIN notebook b ON n.notebook_id = b.id",
        "grades": "SELECT s.student_id, c.name, c.type, g.auto_score, g.manual_score, "
        f"g.extra_credit, g.needs_manual_grade FROM {submission} "
        "JOIN grade g ON g.notebook_id = n.id JOIN base_cell c ON g.cell_id = c.id",
        "comments": "SELECT s.student_id, c.name, c.type, t.auto_comment, t.manual_comment "
        f"FROM {submission} JOIN comment t ON t.notebook_id = n.id "
        "JOIN base_cell c ON t.cell_id = c.id",
    }
    with closing(sqlite3.connect(f"file:{room.out / 'gradebook.db'}?mode=ro", uri=True)) as book:
        return {name: sorted(book.execute(query), key=repr) for name, query in what.items()}


@contextmanager
def grading(
    room: Class, *more: str, command: Sequence[str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """The command, or another one in its place, running; killed at the end where it still runs."""
    begun = subprocess.Popen(
        command or room.command("--workers", "2", *more),
        env=command_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield begun
    finally:
        begun.kill()
        begun.communicate()


def without(guard: str, room: Class, *more: str) -> list[str]:
    """The command with one of its guards removed by this statement, for a control."""
    program = f"{guard}\nfrom autograder.cli.app import main\nraise SystemExit(main())"
    _, _, _, *arguments = room.command("--workers", "2", *more)
    return [sys.executable, "-c", program, *arguments]


def until(condition: Callable[[], Seen], process: subprocess.Popen[str]) -> Seen:
    """Wait for the condition and return its value; the process must not end before."""
    deadline = time.monotonic() + 600
    while not (seen := condition()):
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline, "the sign never came"
        os.sched_yield()
    return seen


@contextmanager
def leased(path: Path) -> Iterator[int]:
    """Make every process that opens this file from now on wait, by the kernel's own means.

    They wait until the end of the context, or until the system ends the wait, 45 s if left as it
    is. Gives what `is_stuck` takes.
    """
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.fcntl(
            file, fcntl.F_SETSIG, signal.SIGURG
        )  # by itself the news would end this process
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield file
    finally:
        os.close(file)


def is_stuck(lease: int) -> bool:
    """Whether a process waits for the file of this lease."""
    return fcntl.fcntl(lease, fcntl.F_GETLEASE) != fcntl.F_WRLCK


def opens(pid: int, path: Path) -> bool:
    """Whether the process has this file open."""
    return any(Path(file.path) == path for file in psutil.Process(pid).open_files())


def workers(pid: int) -> list[psutil.Process]:
    """The grading processes of the command `pid`."""
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            parent = process.parent()
            if parent is not None and all(map(_is_forked, (process, parent))):
                found.append(process)
    return found


def _is_forked(process: psutil.Process) -> bool:
    return "multiprocessing.forkserver" in " ".join(process.cmdline())


def sleeper(pid: int) -> psutil.Process | None:
    """The process by which the slow student's cell shows that it runs, below the process `pid`."""
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.cmdline() == ["sleep", SLEEP]:
                return process
    return None


def asleep(pid: int) -> psutil.Process | None:
    """The grading process whose student's cell sleeps, below the process `pid`."""
    with suppress(psutil.NoSuchProcess):
        process = sleeper(pid)
        for above in process.parents() if process else ():
            if _is_forked(above):
                return above
    return None


def entry(room: Class, student: str) -> Path:
    """The journal's file of one student."""
    return room.out / "journal" / LAB05 / f"{student}.entry"
