"""Watching a student's memory is at the grader's cost, and takes a bounded share of its time."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.base import limits
from autograder.base.limits import Limits
from autograder.sandbox.host import conversation
from autograder.sandbox.host.conversation import Conversation

SLOW, PAUSE = 0.125, 0.01  # seconds of a look at many shared pages, and between messages


class Clock:
    """The time, which passes while the memory is looked at, and between messages."""

    def __init__(self) -> None:
        self.now = self.looked = 0.0

    def read(self) -> float:
        return self.now

    def exceeded(self) -> bool:
        """Look at the memory: the clock is the watch, too."""
        self.now += SLOW
        self.looked += SLOW
        return False


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    time = SimpleNamespace(monotonic=made.read, thread_time=made.read, process_time=made.read)
    monkeypatch.setattr(conversation, "time", time)
    monkeypatch.setattr(limits, "time", time)
    return made


def talk(clock: Clock, seconds: float) -> None:
    """Look after each of the messages of a process that talks for so long."""
    ours, theirs = socket.socketpair()
    turn: Any = SimpleNamespace(look=lambda: None)
    with ours, theirs:
        talking = Conversation(
            ours,
            pid=0,
            handle=-1,
            limits=Limits(),
            watch=clock,  # type: ignore[arg-type]
            cgroup=None,
            kill=lambda: None,
        )
        while clock.now < seconds:
            clock.now += PAUSE
            talking._look(turn)


def test_slow_looks_take_a_third_of_the_time_at_most(clock: Clock) -> None:
    talk(clock, 40)
    assert 0.2 < clock.looked / clock.now < 0.34


def test_their_computing_is_not_charged_as_the_messages(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_MAX_CPU", 60.0)  # less than the looks and the rest together
    talk(clock, 80)
    with pytest.raises(limits.ProcessLost, match="kept the grader busy"):
        talk(clock, clock.now + 120)
