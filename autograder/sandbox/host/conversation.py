"""Exchanges requests and replies with a student's process, within bounds of time, memory and size.

This side holds the clock, watches the memory, and reads only plain data from one socket. It
believes nothing else.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autograder.base.limits import ANSWER_BYTES, Allowance, Limits, ProcessLost
from autograder.base.memory import Watch
from autograder.sandbox.guest.listener import LISTENER, NO_LISTENER
from autograder.sandbox.guest.wire import (
    MAX_MESSAGE,
    ConnectionClosed,
    MessageTooLong,
    WireError,
    decode,
    receive,
    send,
    take,
)
from autograder.sandbox.host.cgroup import Cgroup
from autograder.sandbox.host.clock import Turn
from autograder.sandbox.host.in_process import Ask
from autograder.sandbox.host.isolation import IsolationError
from peakmem.core.serialization import PlainError

__all__ = ["Conversation", "Met", "Replies", "meet_process"]

_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_DESCRIPTOR = struct.Struct("i")
_TICK = 0.05  # seconds between checks of the memory
_START = 120.0  # seconds within which the process must isolate itself
_MAX_ASKED = 100_000  # questions from one probe


@dataclass(frozen=True)
class Met:
    """A student's process that has isolated itself."""

    #: Its id, as certified by the kernel.
    pid: int
    #: The descriptor for the `Overseer`; None if the kernel has none, or the process isn't isolated
    #: or has no memory measured.
    listener: int | None


def meet_process(connection: socket.socket) -> Met:
    """Wait for a student's process to be ready.

    Raises IsolationError if its first message says that the process couldn't isolate itself.
    """
    connection.settimeout(_START)
    listener = pid = None
    if connection.recv(1, socket.MSG_PEEK) in (LISTENER, NO_LISTENER):
        room = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(_DESCRIPTOR.size)
        _, ancillary, _, _ = connection.recvmsg(1, room)
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                pid = int(_CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0])
            elif (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                listener = int(_DESCRIPTOR.unpack(data[: _DESCRIPTOR.size])[0])
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    try:
        first = receive(connection)
        if "ready" not in first:
            raise IsolationError(f"a student's process couldn't be isolated: {first.get('fault')}")
        if pid is None:
            raise IsolationError("the system didn't report the student's process id")
    except BaseException:
        if listener is not None:
            os.close(listener)
        raise
    return Met(pid, listener)


class Replies:
    """Answers a probe's questions as the task defines, and records them in `asked`."""

    def __init__(self, ask: Ask | None) -> None:
        self._ask = ask
        self.asked: list[tuple[Any, Any]] = []

    def to(self, question: Any) -> Any:
        if self._ask is None or len(self.asked) >= _MAX_ASKED:
            raise ProcessLost(_NOT_TO_ASK)
        try:
            reply = self._ask(question)
        except ProcessLost:
            raise
        except Exception:  # no honest probe asks such a question
            raise ProcessLost(_NOT_TO_ASK) from None
        self.asked.append((question, reply))
        return reply


class Conversation:
    """Our end of one process's socket, its allowance, and why it was abandoned, if it was.

    `handle` is a pidfd of the process; `kill` ends it and everything that it started.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        pid: int,
        handle: int,
        limits: Limits,
        watch: Watch,
        cgroup: Cgroup | None,
        kill: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._pid, self._handle = pid, handle
        self._limits = limits
        self._memory = watch
        self._cgroup = cgroup
        self._kill = kill
        self._next_look = 0.0
        self.lost: ProcessLost | None = None
        self.left = Allowance(limits)

    def give_up(self, reason: str | ProcessLost) -> ProcessLost:
        """Kill the process, and return the error that every further request raises."""
        self.lost = ProcessLost(reason) if isinstance(reason, str) else reason
        self._kill()
        return self.lost

    def request(
        self, request: dict[str, Any], seconds: float, replies: Replies | None = None
    ) -> dict[str, Any]:
        """Return the reply to a request. Raises ProcessLost if there is no acceptable reply.

        `replies` answers questions meanwhile. Only a request with `replies` counts as an answer.
        """
        if self.lost is not None:
            raise self.lost
        number = secrets.randbits(62)  # so that a reply can't be sent in advance
        turn = Turn(self._pid, self._handle, seconds, self.left)
        answer_bytes = self.left.answer_bytes

        def look() -> None:
            with turn.at_our_cost():
                self._look(turn)

        try:
            reply = self._exchange({"id": number, **request}, look, replies)
            turn.end()
            return reply
        except ProcessLost as error:
            raise self.give_up(error) from None
        except ConnectionClosed:
            ran_out = self._cgroup is not None and self._cgroup.ran_out()
            raise self.give_up(self._too_much_memory() if ran_out else _ENDED) from None
        except MessageTooLong as error:
            if replies is None:
                raise self.give_up(f"What your code shows couldn't be accepted: {error}.") from None
            self.left.answer_bytes = answer_bytes
            replies.asked.clear()  # the whole answer is dropped
            raise self.give_up(
                f"Your code's answer couldn't be accepted: {error}, since {_ALL_ANSWERS}."
            ) from None
        except (WireError, PlainError, TimeoutError) as error:
            raise self.give_up(f"Your code's answer couldn't be accepted: {error}.") from None

    def _exchange(
        self, request: dict[str, Any], look: Callable[[], None], replies: Replies | None
    ) -> dict[str, Any]:
        """Send a request, answer the questions about it, and return the reply."""
        self._send(request, look)
        while True:
            reply = self._take(look, answers=replies is not None)
            if not isinstance(reply, dict) or not _is_same(reply.get("id"), request["id"]):
                raise ProcessLost("Your code's process sent something that isn't an answer.")
            if "ask" not in reply:
                return reply
            if replies is None:
                raise ProcessLost(_NOT_TO_ASK)
            self._send({"reply": replies.to(reply["ask"])}, look)

    def _send(self, message: dict[str, Any], look: Callable[[], None]) -> None:
        self._connection.settimeout(_TICK)
        send(self._connection, message, look)

    def _take(self, look: Callable[[], None], *, answers: bool) -> Any:
        """Receive one message. The total size is bounded, because this side stores it."""
        left = self.left
        most = min(MAX_MESSAGE, left.sent_bytes, *([left.answer_bytes] if answers else []))
        data = take(self._connection, most, look)
        left.sent_bytes -= len(data)
        left.answer_bytes -= len(data) if answers else 0
        return decode(data)

    def _look(self, turn: Turn) -> None:
        """Check the clock and, at most once a tick, the memory, at the grader's cost.

        Called while the process is silent, and just as often while it keeps sending.
        """
        turn.look()
        if (spent := self.left.spent()) is not None:
            raise spent
        begun = time.monotonic()
        if begun < self._next_look:
            return
        computed = time.thread_time()
        exceeded = self._memory.exceeded()
        self.left.excuse(time.thread_time() - computed)
        # Shared pages are slow to count, so checks may take up to a third of the time.
        ended = time.monotonic()
        self._next_look = ended + max(_TICK, 2 * (ended - begun))
        if exceeded:
            raise ProcessLost(self._too_much_memory())

    def _too_much_memory(self) -> str:
        limit = self._limits.memory_bytes / 2**30
        return f"Your code used more than {limit:.1f} GiB of memory and was stopped."


def _is_same(sent: Any, expected: int | str) -> bool:
    """Whether the sent value is exactly this one; `==` on an array has no truth value."""
    return type(sent) is type(expected) and bool(sent == expected)


_ENDED = "Your code ended its own process (os._exit, a crash, or no memory left)."
_ALL_ANSWERS = f"all answers of a notebook may take {ANSWER_BYTES / 2**20:g} MiB together"
_NOT_TO_ASK = "Your code's process asked a question that this exercise doesn't allow."
