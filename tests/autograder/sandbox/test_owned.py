"""Stopping a process for a while: none of its threads runs, and then they all go on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.base.limits import MachineBusy
from autograder.sandbox.host import owned
from autograder.sandbox.host.owned import stopped

TWO_THREADS = """
import threading
def run():
    while True: pass
threading.Thread(target=run, daemon=True).start()
print("ready", flush=True)
run()
"""


@pytest.fixture
def pid() -> Iterator[int]:
    command = [sys.executable, "-c", TWO_THREADS]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def computed(pid: int) -> int:
    """The ticks that the threads have computed."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    assert len(stats) == 2
    return sum(int(stat.rpartition(")")[2].split()[11]) for stat in stats)


def goes_on(pid: int) -> bool:
    before, end = computed(pid), time.monotonic() + 10
    while computed(pid) == before and time.monotonic() < end:
        time.sleep(0.01)
    return computed(pid) > before


def test_no_thread_runs_while_a_process_is_stopped(pid: int) -> None:
    assert goes_on(pid)
    with stopped([pid]):
        before = computed(pid)
        time.sleep(0.1)
        assert computed(pid) == before
    assert goes_on(pid)


def test_a_process_that_does_not_stop_in_time_goes_on(
    pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned, "_is_still", lambda pid: False)
    monkeypatch.setattr(owned, "_STOP", 0.01)
    with pytest.raises(MachineBusy), stopped([pid]):
        pass
    assert goes_on(pid)


def test_a_process_that_is_gone_is_an_error(pid: int) -> None:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    with pytest.raises((FileNotFoundError, ProcessLookupError)), stopped([pid]):
        pass
