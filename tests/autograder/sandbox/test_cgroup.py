"""Control groups, with real ones where this machine lets the tests make any."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.base.limits import Limits, ProcessLost
from autograder.sandbox.host import cgroup
from autograder.sandbox.host.cgroup import Cgroup, Parent, enclosed
from autograder.sandbox.host.sandbox import Sandbox

MIB = 2**20
PLACE = cgroup.parent()
pytestmark = pytest.mark.skipif(
    PLACE is None, reason="this machine lets the tests make no control group (run them as root)"
)

# Asks for 200 MiB that no process maps, once a line has come: mappings, each of one page.
MAPPINGS = """
import mmap, sys
input()
held = [mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE, prot=1 + 2 * (n % 2)) for n in range(40_000)]
print(len(held))
"""


@pytest.fixture
def place() -> Parent:
    assert PLACE is not None
    return PLACE


@pytest.fixture
def program() -> Iterator[subprocess.Popen[str]]:
    arguments = [sys.executable, "-c", MAPPINGS]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        yield started
        started.kill()


def groups(place: Parent) -> list[str]:
    return [path.name for path in place.path.glob(f"autograder-{os.getpid()}-*")]


def test_the_kernels_own_memory_counts(place: Parent, program: subprocess.Popen[str]) -> None:
    group = enclosed(program.pid, 4 * MIB, 64)
    assert group is not None
    assert not group.ran_out()
    said, _ = program.communicate("\n")
    assert (said, program.returncode) == ("", -9)
    assert group.ran_out()
    group.remove()
    assert groups(place) == []


def test_with_room_for_it_nothing_is_killed(place: Parent, program: subprocess.Popen[str]) -> None:
    group = enclosed(program.pid, 256 * MIB, 64)
    assert group is not None
    said, _ = program.communicate("\n")
    assert (said, program.returncode) == ("40000\n", 0)
    assert not group.ran_out()
    group.remove()
    assert groups(place) == []


def test_a_process_that_is_gone_leaves_no_group(
    place: Parent, program: subprocess.Popen[str]
) -> None:
    program.kill()
    program.wait()
    with pytest.raises(ProcessLookupError):
        enclosed(program.pid, 64 * MIB, 64)
    assert groups(place) == []


def test_what_a_killed_grader_left_goes_and_what_is_in_use_stays(
    place: Parent, program: subprocess.Popen[str]
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    left = place.path / f"autograder-{ended.pid}-0"
    left.mkdir()
    group = Cgroup(place, 64 * MIB, 64)
    group.take_in(program.pid)
    cgroup.parent.cache_clear()
    assert cgroup.parent() == place
    assert not left.exists()
    assert len(groups(place)) == 1
    program.communicate("\n")
    group.remove()


def test_where_no_group_can_be_made_none_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "_own_group", lambda _: Path("/proc/no-place-for-groups"))
    cgroup.parent.cache_clear()
    try:
        assert cgroup.parent() is None
        assert enclosed(os.getpid(), MIB, 1) is None
    finally:
        cgroup.parent.cache_clear()


def _enclosed_in_less(pid: int, _: int, processes: int) -> Cgroup | None:
    return enclosed(pid, 64 * MIB, processes)


TOUCH = "block = bytearray(b'1') * (200 << 20)\nprint('had it')"


@pytest.mark.sandbox
def test_a_submission_is_in_a_group_and_what_the_group_ends_is_told(
    place: Parent, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(cell_seconds=60, memory_bytes=512 * MIB)
    with Sandbox(limits=limits, measured=False, preload=()) as sandbox:
        with sandbox.open() as student:
            assert len(groups(place)) == 1
            assert student.run_cell(TOUCH)[0]["text"] == "had it\n"
        # Less than the watch allows, so that the kernel alone ends it.
        monkeypatch.setattr("autograder.sandbox.host.student.enclosed", _enclosed_in_less)
        with sandbox.open() as student, pytest.raises(ProcessLost, match=r"0\.5 GiB of memory"):
            student.run_cell(TOUCH)
        monkeypatch.setattr("autograder.sandbox.host.student.enclosed", lambda *_: None)
        with sandbox.open() as student:
            assert student.run_cell(TOUCH)[0]["text"] == "had it\n"
    assert groups(place) == []
