"""Memory as /proc tells it, of this very process and of a child."""

import ctypes
import os
import subprocess
import sys

import psutil
import pytest

from autograder import memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

MIB = 2**20
PR_SET_NAME, PR_GET_NAME = 15, 16


def test_the_peak_is_that_since_the_reset() -> None:
    child = "x = bytearray(b'1') * (64 * 2**20); del x; print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        before = memory.peak_bytes(process.pid)
        resident = memory.reset_peak(process.pid)
        after = memory.peak_bytes(process.pid)
        assert resident == psutil.Process(process.pid).memory_info().rss
        assert before is not None
        assert after is not None
        assert resident is not None
        assert before - resident > 60 * MIB
        assert after - resident < MIB
        assert memory.children_bytes(os.getpid()) >= resident
        assert 0 < memory.code_bytes(process.pid) < resident
        process.communicate(b"\n")


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
    peak = memory.peak_bytes(os.getpid())
    resident = memory.Watch(os.getpid(), 0)._start
    assert peak is not None
    assert peak >= resident > 10 * MIB


def test_a_process_that_is_gone_has_none() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    assert memory.peak_bytes(done.pid) is None
    assert memory.reset_peak(done.pid) is None
    assert memory.written_bytes(done.pid) is None
    assert memory.stack_start(done.pid) is None
    assert (memory.code_bytes(done.pid), memory.children_bytes(done.pid)) == (0, 0)
