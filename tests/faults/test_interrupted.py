"""Ctrl-C in a terminal, and the progress on the terminal."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from tests.faults.faulty import asleep, assert_as_undisturbed, assert_disturbed, until
from tests.grading import Class, command_environment

BAR = re.compile(r"lab05_accumulation: +\d+%.*?([1-7])/7 \[\d\d:\d\d<\d\d:\d\d, ")


class Terminal:
    """A real terminal in which the command runs, as a user sees it."""

    def __init__(self, room: Class) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))  # rows, columns
        # A signal that is ignored here would be ignored by the command too.
        inside = ("setsid", "--ctty", "--wait", "env", "--default-signal=INT")
        self.process = subprocess.Popen(
            [*inside, *room.command("--workers", "2")],
            env=command_environment(),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            text=True,
        )
        os.close(theirs)
        os.set_blocking(self._ours, False)
        self.shown = ""

    def look(self) -> str:
        """The output so far."""
        with suppress(BlockingIOError, OSError):  # nothing new, or the command has ended
            while True:
                self.shown += os.read(self._ours, 65536).decode(errors="replace")
        return self.shown

    def press_control_c(self) -> None:
        os.write(self._ours, b"\x03")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@contextmanager
def terminal(room: Class) -> Iterator[Terminal]:
    running = Terminal(room)
    try:
        yield running
    finally:
        running.close()


def wait_for_end(running: Terminal) -> int:
    """Read until the command ends, which a full terminal would keep it from."""
    while running.process.poll() is None:
        running.look()
        os.sched_yield()
    running.look()
    return running.process.returncode


def server(pid: int) -> psutil.Process | None:
    """The process that workers are going to be forked from."""
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "multiprocessing.forkserver" in " ".join(process.cmdline()):
                return process
    return None


@pytest.mark.slow
@pytest.mark.parametrize("sign", [asleep, server], ids=["in a cell", "at the start"])
@pytest.mark.parametrize("times", [1, 2])
def test_control_c_stops_cleanly_and_the_same_command_goes_on(
    undisturbed: Class, room: Class, sign, times
) -> None:
    with terminal(room) as running:
        until(lambda: (running.look(), sign(running.process.pid))[1], running.process)
        below = psutil.Process(running.process.pid).children(recursive=True)
        for _ in range(times):
            running.press_control_c()
        assert wait_for_end(running) == 130, running.shown
        assert "Run the same command again to continue." in running.shown
        assert "Traceback" not in running.shown
        assert psutil.wait_procs(below, timeout=600)[1] == []
        assert "Traceback" not in running.look()
    assert_disturbed(room, undisturbed)
    done = room.grade("--workers", "2")
    assert done.returncode == 0, done.stderr
    assert_as_undisturbed(room, undisturbed)


@pytest.mark.slow
def test_a_terminal_shows_how_far_it_is_and_how_long_it_will_take(room: Class) -> None:
    with terminal(room) as running:
        assert wait_for_end(running) == 0, running.shown
    done = [int(match[1]) for match in BAR.finditer(running.shown)]
    assert done == sorted(done)
    assert done[-1] == 7
    assert len(set(done)) > 2, "it moves on while it works"


@pytest.mark.slow
def test_control_who_runs_in_no_terminal_gets_no_bar(undisturbed: Class) -> None:
    assert not BAR.search(undisturbed.grade("--workers", "2").stderr)
