"""A class that faults are injected into while the real command grades it, and how to inject them.

Every fault is real: signals, full disks, locks. What a test waits for is an event that it can see
from outside, a process or a file, never a time.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copytree
from typing import TypeVar

import psutil

from autograder.audit import audit
from autograder.database import scores_in
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
    "elsewhere",
    "entry",
    "grading",
    "hand_in_all",
    "sleeper",
    "until",
    "workers",
]

SLEEP = "3.625"  # seconds that one student's cell takes; the number tells its process from others
LINEAR = """
def largest_micro_batch(run, upper):
    for m in range(upper):
        try: run(m + 1)
        except peakmem.OutOfMemory: return m
    return upper
"""
Seen = TypeVar("Seen")


def hand_in_all(room: Class) -> None:
    """Right, partly right and wrong work, what is no notebook, and one whose cell takes a while."""
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


def elsewhere(room: Class, folder: Path) -> Class:
    """The same submissions and the same course, with an out folder of their own."""
    copytree(room.submitted, folder / "submitted")
    return Class(folder, room.course)


def assert_as_undisturbed(room: Class, reference: Class) -> None:
    """Nobody is missing, nobody is there twice, and everything is as in a run without faults."""
    assert audit(room.out) == []
    keys = [(row["student"], row["task"]) for row in room.rows()]
    assert len(keys) == len(set(keys))
    assert (room.out / "grades.csv").read_bytes() == (reference.out / "grades.csv").read_bytes()
    assert scores_in(room.out) == scores_in(reference.out)
    for derived in ("feedback/*/*.html", "autograded/*/*/*.ipynb"):
        found, expected = (
            {path.relative_to(of.out): path.read_bytes() for path in of.out.glob(derived)}
            for of in (room, reference)
        )
        assert found == expected


@contextmanager
def grading(room: Class, *more: str) -> Iterator[subprocess.Popen[str]]:
    """The command, running; killed at the end where it still runs."""
    begun = subprocess.Popen(
        room.command("--workers", "2", *more),
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


def until(condition: Callable[[], Seen], process: subprocess.Popen[str]) -> Seen:
    """What the condition gives, once it is true; the process must not end before."""
    deadline = time.monotonic() + 240
    while not (seen := condition()):
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline, "the sign never came"
        os.sched_yield()
    return seen


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
