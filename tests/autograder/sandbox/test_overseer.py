"""The overseer: what a student's process may make read-only while its memory is measured."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from autograder.base.limits import ProcessLost
from autograder.model.task import Budget
from autograder.sandbox.guest.listener import NO_LISTENER
from autograder.sandbox.host import conversation
from autograder.sandbox.host.isolation import missing_layers
from autograder.sandbox.host.overseer import MOST_CHANGES, SHUT_BYTES
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.student import SandboxStudent

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or bool(missing_layers()), reason="the sandbox cannot run here"
)
# A probe that is put into the process by a cell: how many of its changes of rights succeed.
PROBE = """
import ctypes, sys, types
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
place = libc.mmap(None, ctypes.c_size_t(4 << 20), 3, 0x22, -1, 0)
module = sys.modules["trial"] = types.ModuleType("trial")
def probe(student, piece, rights, times, metered=True):
    changed = [libc.mprotect(place, piece, rights) for _ in range(times)]
    libc.mprotect(place, 4 << 20, 3)
    return changed.count(0), ctypes.get_errno()
module.probe = probe
"""
READ, READ_AND_WRITE, READ_AND_RUN = 1, 3, 5
QUARTER = SHUT_BYTES // 4


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as prepared:
        yield prepared


@pytest.fixture
def student(sandbox: Sandbox) -> Iterator[SandboxStudent]:
    with sandbox.open() as opened:
        opened.run_cell(PROBE)
        yield opened


def changed(student: SandboxStudent, budget: Budget | None, rights: int) -> int:
    inputs = {"piece": QUARTER, "rights": rights, "times": 9}
    answer = student.run("trial:probe", inputs, budget=budget)
    assert answer.lost is None
    return answer.value[0]


@pytest.mark.parametrize("rights", [0, READ, READ_AND_RUN])
def test_a_measured_call_makes_only_so_much_read_only(student: SandboxStudent, rights: int) -> None:
    assert changed(student, Budget(2**24), rights) == 4
    assert changed(student, Budget(2**24), rights) == 4  # each call anew


def test_other_calls_change_what_they_like(student: SandboxStudent) -> None:
    assert changed(student, None, READ) == 9
    assert changed(student, Budget(2**24), READ_AND_WRITE) == 9
    assert changed(student, None, READ) == 9


def test_a_huge_length_takes_no_more_than_there_is(student: SandboxStudent) -> None:
    inputs = {"piece": 2**63, "rights": READ, "times": 3}
    answer = student.run("trial:probe", inputs, budget=Budget(2**24))
    assert answer.value == (0, 12)  # ENOMEM


def test_without_it_no_budget_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    met = conversation.Met

    def without(pid: int, listener: int | None) -> conversation.Met:
        assert listener is not None
        os.close(listener)
        return met(pid, None)

    with Sandbox() as prepared:
        with prepared.open() as opened:
            assert opened.budgets_hold
        monkeypatch.setattr(conversation, "Met", without)
        with prepared.open() as opened:
            assert not opened.budgets_hold


def test_processes_that_are_asking_end_with_the_submission(sandbox: Sandbox) -> None:
    cell = "import os\nfor _ in range(4):\n    if os.fork() == 0:\n"
    cell += "        while True: libc.mprotect(place, 4096, 3)"
    with sandbox.open() as opened:
        opened.run_cell(PROBE)
        opened.run_cell(cell)
    with sandbox.open() as opened:  # raises IsolationError if something of the last one remains
        assert opened.run_cell("1 + 1")[0]["data"] == {"text/plain": "2"}


def test_who_asks_too_often_is_ended(student: SandboxStudent) -> None:
    with pytest.raises(ProcessLost):
        student.run_cell(f"for _ in range({MOST_CHANGES} + 1): libc.mprotect(place, 4096, 3)")


def test_in_labs_that_measure_nothing_no_process_asks() -> None:
    with Sandbox(measured=False, preload=()) as sandbox, sandbox.open() as student:
        student.run_cell(PROBE)
        student.run_cell(f"for _ in range({MOST_CHANGES} + 1): libc.mprotect(place, 4096, 3)")
        assert not student.is_lost


def test_the_bytes_before_a_process_is_ready_differ_from_a_messages_length() -> None:
    assert NO_LISTENER != b"\0"
