"""Requests to a student's process and its replies, within bounds of time, memory and length.

This side holds the clock, watches the memory and reads plain data off one socket. It believes
nothing else.
"""

from __future__ import annotations

import secrets
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from autograder.base.limits import ANSWER_BYTES, Allowance, Limits, ProcessLost
from autograder.base.memory import Watch
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

__all__ = ["Conversation", "Replies", "named_process"]

_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_TICK = 0.05  # seconds between looks at the memory
_START = 120.0  # seconds that shutting itself in may take
_MAX_ASKED = 100_000  # questions of one probe


def named_process(connection: socket.socket) -> int:
    """Return the process id of the first message's sender, which the kernel vouches for.

    Raises IsolationError if that message says that the process could not be shut in.
    """
    connection.settimeout(_START)
    _, ancillary, _, _ = connection.recvmsg(
        8, socket.CMSG_SPACE(_CREDENTIALS.size), socket.MSG_PEEK
    )
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    first = receive(connection)
    if "ready" not in first:
        raise IsolationError(f"a student's process could not be shut in: {first.get('fault')}")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            return int(_CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0])
    raise IsolationError("the system did not name the student's process")


class Replies:
    """Answers a probe's questions, as the task says, and keeps them in `asked`."""

    def __init__(self, ask: Ask | None) -> None:
        self._ask = ask
        self.asked: list[tuple[Any, Any]] = []

    def to(self, question: Any) -> Any:
        if self._ask is None or len(self.asked) >= _MAX_ASKED:
            raise ProcessLost(_NOT_TO_ASK)
        try:
            reply = self._ask(question)
        except Exception:  # a question of a form that no honest probe has
            raise ProcessLost(_NOT_TO_ASK) from None
        self.asked.append((question, reply))
        return reply


class Conversation:
    """One process's side of the socket, what it may use, and why it was given up, if it was.

    `handle` is a pidfd of the process; `kill` ends it and everything that it started.
    """

    def __init__(
        self,
        connection: socket.socket,
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
        """Kill the process, and return the error that every further request ends in."""
        self.lost = ProcessLost(reason) if isinstance(reason, str) else reason
        self._kill()
        return self.lost

    def request(
        self, request: dict[str, Any], seconds: float, replies: Replies | None = None
    ) -> dict[str, Any]:
        """Return the reply to a request; ProcessLost if there is none that can be taken.

        `replies` answer what is asked meanwhile. Only a request with them counts as an answer.
        """
        if self.lost is not None:
            raise self.lost
        number = secrets.randbits(62)  # which nobody can reply to in advance
        turn = Turn(self._pid, self._handle, seconds, self.left)
        answer_bytes = self.left.answer_bytes

        def look() -> None:
            with turn.at_our_cost():
                self._look(turn)

        try:
            self._send({"id": number, **request}, look)
            while True:
                reply = self._take(look, answers=replies is not None)
                if not isinstance(reply, dict) or not _is_same(reply.get("id"), number):
                    raise ProcessLost("Your code's process sent something that is not an answer.")
                if "ask" not in reply:
                    turn.end()
                    return reply
                if replies is None:
                    raise ProcessLost(_NOT_TO_ASK)
                self._send({"reply": replies.to(reply["ask"])}, look)
        except ProcessLost as error:
            raise self.give_up(error) from None
        except ConnectionClosed:
            ran_out = self._cgroup is not None and self._cgroup.ran_out()
            raise self.give_up(self._too_much_memory() if ran_out else _ENDED) from None
        except MessageTooLong as error:
            if replies is None:
                raise self.give_up(f"What your code shows could not be taken: {error}.") from None
            self.left.answer_bytes = answer_bytes
            replies.asked.clear()  # for nothing of it is kept
            raise self.give_up(
                f"Your code's answer could not be taken: {error}, since {_ALL_ANSWERS}."
            ) from None
        except (WireError, PlainError, TimeoutError) as error:
            raise self.give_up(f"Your code's answer could not be taken: {error}.") from None

    def _send(self, message: dict[str, Any], look: Callable[[], None]) -> None:
        self._connection.settimeout(_TICK)
        send(self._connection, message, look)

    def _take(self, look: Callable[[], None], *, answers: bool) -> Any:
        """Receive one message. What a process may send in all is bounded: this side keeps it."""
        left = self.left
        most = min(MAX_MESSAGE, left.sent_bytes, *([left.answer_bytes] if answers else []))
        data = take(self._connection, most, look)
        left.sent_bytes -= len(data)
        left.answer_bytes -= len(data) if answers else 0
        return decode(data)

    def _look(self, turn: Turn) -> None:
        """Look at the clock and, not more often than need be, at the memory.

        This is done while the process says nothing, and as often while it talks without end.
        """
        turn.look()
        if (spent := self.left.spent()) is not None:
            raise spent
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _TICK
        if self._memory.exceeded():
            raise ProcessLost(self._too_much_memory())

    def _too_much_memory(self) -> str:
        limit = self._limits.memory_bytes / 2**30
        return f"Your code used more than {limit:.1f} GiB of memory and was stopped."


def _is_same(sent: Any, expected: int | str) -> bool:
    """Whether what was sent is this very value. An array compares, but has no truth value."""
    return type(sent) is type(expected) and bool(sent == expected)


_ENDED = "Your code ended its own process (os._exit, a crash, or no memory left)."
_ALL_ANSWERS = f"all answers of a notebook may take {ANSWER_BYTES / 2**20:g} MiB together"
_NOT_TO_ASK = "Your code's process asked what it had no business to ask."
