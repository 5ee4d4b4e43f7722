"""One submission's process in the sandbox, seen from the trusted side.

This side holds the clock, watches the memory and reads plain data off one socket. It believes
nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from autograder.base import memory
from autograder.base.cleaning import plain_text
from autograder.base.limits import ANSWER_BYTES, Allowance, Limits, MachineBusy, ProcessLost
from autograder.model.task import Answer, Budget
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
from autograder.sandbox.host.budget import Enforced, footprint
from autograder.sandbox.host.cgroup import Cgroup, enclosed
from autograder.sandbox.host.clock import Turn
from autograder.sandbox.host.in_process import Ask
from autograder.sandbox.host.isolation import IsolationError
from peakmem.plain import PlainError

__all__ = ["SandboxStudent"]

_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_TICK = 0.05  # seconds between looks at the memory
_START = 120.0  # seconds that shutting itself in may take
_END = 30.0  # seconds that killing may take
_MAX_ASKED = 100_000  # questions of one probe
_TRIAL_BYTES = 16 * 2**20
_KERNEL_BYTES = 256 * 2**20  # of a submission's control group, for what no process maps


class SandboxStudent:
    """A student whose code runs in the sandbox. Everything it sends is a claim, not a fact.

    Its process may take a while to be there: `meet()` waits for it, and all else is for after that.
    Who does not want it any more before that lets it `leave()`.
    """

    def __init__(
        self,
        connection: socket.socket,
        limits: Limits,
        *,
        isolated: bool,
        gpu: bool,
        measured: bool,
    ) -> None:
        self._connection = connection
        self._limits = limits
        self._measured = measured
        self._isolated = isolated
        self._gpu = gpu
        self._next_look = 0.0
        self._lost: ProcessLost | None = None
        if isolated:
            with contextlib.suppress(ConnectionClosed):  # which is found out on meeting
                send(connection, self._jail_limits())

    def meet(self) -> None:
        """Wait for the process, and begin to watch it; OSError where it does not come."""
        self._pid = self._named_process()
        self._handle = os.pidfd_open(self._pid)
        self._left = Allowance(self._limits)
        self._memory = memory.Watch(self._pid, self._limits.memory_bytes)
        self._cgroup = self._enclosed() if self._isolated else None
        self._stack = memory.stack_start(self._pid)
        self._budgets_hold = self._measured and self._tries_a_budget()

    def _enclosed(self) -> Cgroup | None:
        """A control group around the process, with room for all that other limits let it have."""
        limits = self._limits
        room = self._memory.start_bytes + limits.tmp_bytes + limits.shm_bytes + _KERNEL_BYTES
        return enclosed(self._pid, limits.memory_bytes + room, limits.processes)

    def _tries_a_budget(self) -> bool:
        """Tell whether the kernel holds the process to one; no student code has run in it yet."""
        try:
            self._settle(shut=True)
            self._prepared = footprint(self._pid)
            enforced = Enforced(self._pid, Budget(_TRIAL_BYTES), self._prepared)
            reply = self._settle(2 * _TRIAL_BYTES, shut=True)
            enforced.lift()
            self._settle(shut=False)
        except (OSError, ProcessLost):
            return False
        return reply.get("had") is False

    def leave(self) -> None:
        """Do without the process, which ends by itself when nobody is at the other end."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def is_lost(self) -> bool:
        """Whether the process is no more, or was given up."""
        return self._lost is not None

    @property
    def budgets_hold(self) -> bool:
        """Whether the kernel held this process to a budget of memory when it was tried."""
        return self._budgets_hold

    def share(self, left: Allowance) -> None:
        """Let this process use what is left of `left`, instead of an allowance of its own."""
        self._left = left

    def place(self, files: Mapping[str, bytes]) -> None:
        """Write files, by their paths, into the working directory, before anything else is run.

        Where a file is already, it stays. Raises IsolationError where they cannot be had there.
        """
        for path, data in files.items():
            try:
                self._request({"file": path, "data": data}, self._limits.cell_seconds, None, [])
            except ProcessLost as error:  # none of the student's code has run yet
                raise IsolationError(f"{path} could not be written: {error}") from None

    def run_cell(
        self, source: str, keep: Mapping[str, Sequence[str]] | None = None
    ) -> list[dict[str, Any]]:
        """Run one cell and return its outputs as sent; ProcessLost where it took the process.

        `keep` maps the names of states to variables, which belong to that state as they are after
        this cell, unless an earlier cell gave them to it.
        """
        seconds = self._limits.cell_seconds
        request = {"cell": source, "seconds": seconds, "keep": dict(keep or {})}
        reply = self._request(request, seconds, None, [])
        outputs = reply.get("outputs")
        return outputs if isinstance(outputs, list) else []

    def run(
        self,
        probe: str,
        inputs: Mapping[str, Any],
        ask: Ask | None = None,
        *,
        seconds: float | None = None,
        budget: Budget | None = None,
        state: str = "",
    ) -> Answer:
        """Run a probe and return what came back; a process that is lost makes a lost answer.

        With a `budget` the kernel refuses the call memory beyond it. Then the call is made once
        more, metered and without a budget, so that the judge can name the mistake. `state` is
        which of the states that were kept the notebook's names are put into.
        """
        call = _Call(probe, inputs, ask, seconds or self._limits.cell_seconds, state)
        if budget is None:
            return self._run(call)[0]
        if not self._budgets_hold:
            return replace(self._run(call)[0], doubt=_NO_BUDGETS)
        answer, refused, doubt = self._run_within(budget, call)
        if refused:
            metered, _ = self._run(call)
            return replace(metered, memory="refused")
        if answer.raised is not None and answer.raised[:2] in _REFUSED_BESIDE:
            kind, message, trace = answer.raised
            answer = replace(answer, raised=(kind, f"{message}. {_WHILE_MEASURED}", trace))
        return replace(answer, memory="within", doubt=doubt)

    def _run_within(self, budget: Budget, call: _Call) -> tuple[Answer, bool, str]:
        """Run a probe under a budget: its answer, whether memory was refused, and any doubt."""
        try:
            self._settle(shut=True)
            enforced = Enforced(self._pid, budget, self._prepared, self._places())
            answer, refused = self._run(replace(call, inputs={**call.inputs, "metered": False}))
            if not self.is_lost:
                enforced.lift()
                # Whatever else was sent meanwhile is no reply to this, and loses the process.
                self._settle(shut=False)
            return answer, refused, enforced.doubt
        except ProcessLost as error:
            return Answer(lost=str(error), busy=isinstance(error, MachineBusy)), False, ""
        except OSError:
            return Answer(lost=str(self._give_up(ProcessLost(_GONE)))), False, ""

    def _settle(self, try_bytes: int = 0, *, shut: bool) -> dict[str, Any]:
        """Have the process get ready for a budget, or go on without one where nothing is `shut`."""
        request = {"settle": try_bytes, "shut": shut}
        return self._request(request, self._limits.cell_seconds, None, [])

    def _run(self, call: _Call) -> tuple[Answer, bool]:
        """Run a probe; return its answer, and whether the kernel refused it memory."""
        asked: list[tuple[Any, Any]] = []
        try:
            reply = self._request(call.request(), call.seconds, _Replies(call.ask, asked), asked)
            self._see_that_it_is_the_same()
        except ProcessLost as error:
            busy = isinstance(error, MachineBusy)
            return Answer(lost=str(self._give_up(error)), asked=tuple(asked), busy=busy), False
        raised = reply.get("raised")
        if raised is not None:
            answer = Answer(raised=_three_texts(raised), asked=tuple(asked))
            return answer, reply.get("refused") is True
        return Answer(reply.get("value"), asked=tuple(asked)), False

    def kill(self) -> None:
        """Kill the process and everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def close(self) -> None:
        """Kill the process and everything that it started, and wait until all of it is gone."""
        self.kill()
        # Process 1 of a namespace is gone when all others in it are. A fork bomb takes a moment.
        select.select([self._handle], [], [], _END)
        os.close(self._handle)
        self._connection.close()
        if self._cgroup is not None:
            self._cgroup.remove()

    def _places(self) -> list[str]:
        """The folders where the process may write, as they are seen from here."""
        root = f"/proc/{self._pid}/root"
        return [f"{root}/tmp", f"{root}/dev/shm"] if self._isolated else []

    def _jail_limits(self) -> dict[str, Any]:
        limits = self._limits
        return {
            "memory_bytes": limits.memory_bytes,
            "tmp_bytes": limits.tmp_bytes,
            "shm_bytes": limits.shm_bytes,
            "files": limits.files,
            "processes": limits.processes,
            "cpu_seconds": int(2 * limits.submission_seconds),
            "gpu": self._gpu,
        }

    def _named_process(self) -> int:
        """Read the first message, and the sender's process id that the kernel vouches for."""
        self._connection.settimeout(_START)
        _, ancillary, _, _ = self._connection.recvmsg(
            8, socket.CMSG_SPACE(_CREDENTIALS.size), socket.MSG_PEEK
        )
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        first = receive(self._connection)
        if "ready" not in first:
            raise IsolationError(f"a student's process could not be shut in: {first.get('fault')}")
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                return int(_CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0])
        raise IsolationError("the system did not name the student's process")

    def _request(
        self, request: dict[str, Any], seconds: float, replies: _Replies | None, asked: list[Any]
    ) -> dict[str, Any]:
        if self._lost is not None:
            raise self._lost
        number = secrets.randbits(62)  # which nobody can reply to in advance
        turn = Turn(self._pid, self._handle, seconds, self._left)
        answer_bytes = self._left.answer_bytes

        def look() -> None:
            with turn.at_our_cost():
                self._look(turn, replies)

        try:
            self._send({"id": number, **request}, look)
            while True:
                reply = self._take(look, answers=replies is not None)
                if not isinstance(reply, dict) or not _is_same(reply.get("id"), number):
                    raise ProcessLost("Your code's process sent something that is no answer.")
                if "ask" not in reply:
                    turn.end()
                    return reply
                if replies is None or len(asked) >= _MAX_ASKED:
                    raise ProcessLost(_NOT_TO_ASK)
                self._send({"reply": replies.to(reply["ask"])}, look)
        except ProcessLost as error:
            raise self._give_up(error) from None
        except ConnectionClosed:
            ran_out = self._cgroup is not None and self._cgroup.ran_out()
            raise self._give_up(self._too_much_memory() if ran_out else _ENDED) from None
        except MessageTooLong as error:
            if replies is None:
                raise self._give_up(f"What your code shows could not be taken: {error}.") from None
            self._left.answer_bytes, asked[:] = answer_bytes, []  # for nothing of it is kept
            raise self._give_up(
                f"Your code's answer could not be taken: {error}, since {_ALL_ANSWERS}."
            ) from None
        except (WireError, PlainError, TimeoutError) as error:
            raise self._give_up(f"Your code's answer could not be taken: {error}.") from None

    def _send(self, message: dict[str, Any], look: Callable[[], None]) -> None:
        self._connection.settimeout(_TICK)
        send(self._connection, message, look)

    def _take(self, look: Callable[[], None], *, answers: bool) -> Any:
        """Receive one message. What a process may send in all is bounded: this side keeps it."""
        left = self._left
        most = min(MAX_MESSAGE, left.sent_bytes, *([left.answer_bytes] if answers else []))
        data = take(self._connection, most, look)
        left.sent_bytes -= len(data)
        left.answer_bytes -= len(data) if answers else 0
        return decode(data)

    def _look(self, turn: Turn, replies: _Replies | None) -> None:
        """Look at the clock and, not more often than need be, at the memory.

        This is done while the process says nothing, and as often while it talks without end.
        """
        turn.look()
        if (spent := self._left.spent()) is not None:
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

    def _see_that_it_is_the_same(self) -> None:
        """ProcessLost where the process is another program now, with another peak of memory."""
        if memory.stack_start(self._pid) != self._stack:
            raise ProcessLost("Your code ended its own process, or put another in its place.")

    def _give_up(self, reason: str | ProcessLost) -> ProcessLost:
        self._lost = ProcessLost(reason) if isinstance(reason, str) else reason
        self.kill()
        return self._lost


@dataclass(frozen=True)
class _Call:
    """One call of a probe, in the state of the notebook's names that is called `state`."""

    probe: str
    inputs: Mapping[str, Any]
    ask: Ask | None
    seconds: float
    state: str

    def request(self) -> dict[str, Any]:
        return {
            "probe": self.probe,
            "inputs": dict(self.inputs),
            "seconds": self.seconds,
            "state": self.state,
        }


class _Replies:
    """Answers a probe's questions, as the task says."""

    def __init__(self, ask: Ask | None, asked: list[tuple[Any, Any]]) -> None:
        self._ask = ask
        self._asked = asked

    def to(self, question: Any) -> Any:
        if self._ask is None:
            raise ProcessLost(_NOT_TO_ASK)
        try:
            reply = self._ask(question)
        except Exception:  # a question of a form that no honest probe has
            raise ProcessLost(_NOT_TO_ASK) from None
        self._asked.append((question, reply))
        return reply


_NO_BUDGETS = (
    "This machine does not hold a process to a budget of memory, so what the meter within it says "
    "cannot be confirmed. An instructor will look at this."
)
# What a budget refuses beside memory, as Python tells it.
_REFUSED_BESIDE = {
    ("RuntimeError", "can't start new thread"),
    ("BlockingIOError", f"[Errno {errno.EAGAIN}] {os.strerror(errno.EAGAIN)}"),
    ("OSError", f"[Errno {errno.EFBIG}] {os.strerror(errno.EFBIG)}"),
}
_WHILE_MEASURED = (
    "While its memory is measured, your code can start no thread or process and write to no file."
)
_ENDED = "Your code ended its own process (os._exit, a crash, or no memory left)."
_GONE = "Your code ended its own process."
_ALL_ANSWERS = f"all answers of a notebook may take {ANSWER_BYTES / 2**20:g} MiB together"
_NOT_TO_ASK = "Your code's process asked what it had no business to ask."


def _is_same(sent: Any, expected: int | str) -> bool:
    """Whether what was sent is this very value. An array compares, but has no truth value."""
    return type(sent) is type(expected) and bool(sent == expected)


def _three_texts(raised: Any) -> tuple[str, str, str]:
    """An exception as sent: believed only in its form, and cut to a bearable length."""
    parts = raised if isinstance(raised, (list, tuple)) else ()
    texts = [plain_text(part[:1000]) if isinstance(part, str) else "" for part in parts[:3]]
    kind, message, trace = (*texts, "", "", "")[:3]
    return kind, message, trace
