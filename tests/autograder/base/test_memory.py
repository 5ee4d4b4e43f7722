"""Memory as /proc tells it, of this very process and of a child."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from autograder.base import memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

MIB = 2**20
PR_SET_NAME, PR_GET_NAME = 15, 16


@contextmanager
def child(code: str) -> Iterator[int]:
    """A child of this process that has printed a line and waits for another."""
    program = [sys.executable, "-uc", f"import ctypes, os, threading\n{code}"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_sizes_are_those_of_the_system() -> None:
    with child("x = bytearray(b'1') * (64 * 2**20); print(); input()") as pid:
        resident = psutil.Process(pid).memory_info().rss
        assert memory.status_bytes(pid, "VmRSS") == resident > 64 * MIB
        assert memory.status_bytes(pid, "VmHWM") >= resident
        assert memory.owner(pid) == (os.getuid(), os.getgid())


def test_children_are_those_that_can_hold_memory() -> None:
    forks = "os.fork() or (os.read(0, 1), os._exit(0))\nprint(); input()"
    with child(forks) as pid:
        assert memory.descendants(pid)
    waits = "os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)"
    with child(f"os.fork() or os._exit(0)\n{waits}\nprint(); input()") as pid:  # a zombie
        assert not memory.descendants(pid)


# The first thread ends, and another stays: the system shows such a process as a zombie.
ENDS = """
def stay():
    print()
    os.read(0, 1)
block = bytearray(b'1') * (64 * 2**20)
def end():
    threading.Thread(target=stay).start()
    ctypes.CDLL(None).syscall({number}, 0)
"""
EXIT = {"x86_64": 60, "aarch64": 93}


def test_a_process_whose_first_thread_ended_has_sizes_and_is_a_child() -> None:
    ends = ENDS.format(number=EXIT[os.uname().machine])
    with child(ends + "end()") as pid:
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            os.sched_yield()
        assert memory.status_bytes(pid, "VmRSS") > 64 * MIB
        assert memory.Watch(pid, 0).start_bytes > 64 * MIB
    with child(ends + "os.fork() or end()\ninput()") as pid:
        assert memory.descendants(pid)


@pytest.fixture
def named():
    libc, kept = ctypes.CDLL(None), ctypes.create_string_buffer(16)
    libc.prctl(PR_GET_NAME, kept)
    yield lambda name: libc.prctl(PR_SET_NAME, name)
    libc.prctl(PR_SET_NAME, kept)


@pytest.mark.parametrize("end", [b"\n", b"\x0b", b"\x0c", b"\x1c", b"\x85", b"\r"])
@pytest.mark.parametrize("field", [b"VmHWM", b"VmRSS"])
def test_a_process_cannot_tell_its_memory_by_its_name(named, end: bytes, field: bytes) -> None:
    named(end + field + b":\t1 kB")
    peak = memory.status_bytes(os.getpid(), "VmHWM")
    resident = memory.Watch(os.getpid(), 0).start_bytes
    assert peak >= resident > 10 * MIB


def test_a_process_that_is_gone_has_none() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    for ask in (memory.owner, lambda pid: memory.status_bytes(pid, "VmRSS")):
        with pytest.raises(OSError, match=str(done.pid)):
            ask(done.pid)
    assert memory.stack_start(done.pid) is None
    assert not memory.descendants(done.pid)
