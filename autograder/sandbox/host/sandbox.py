"""Runs a student's cells and probes in isolation.

A backend decides what students' code sees: Python and the course's library, read-only, and no
network, home, gradebook, other submissions, solutions or tasks. A prepared process inside
(`guest/server.py`) is forked for each submission, and each fork isolates itself.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from autograder.base.limits import Limits
from autograder.sandbox.guest.wire import send
from autograder.sandbox.host.backend import Backend, Launch, Place
from autograder.sandbox.host.isolation import IsolationError
from autograder.sandbox.host.namespaces import Namespaces
from autograder.sandbox.host.student import SandboxStudent

__all__ = ["EVERYTHING", "Sandbox"]

#: The modules that notebooks of the course's own labs may import.
EVERYTHING = ("torch", "torch._dynamo", "matplotlib.pyplot", "tqdm.auto")

_START = 120.0  # seconds allowed for the preparation

# Fixed thresholds: glibc's adaptive ones grow with use, and freed tensors would then stay on the
# heap, where a budget counts them. One heap for all threads, because each further one maps 64 MiB.
_FREED_AT_ONCE = {
    "MALLOC_MMAP_THRESHOLD_": str(64 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(64 * 1024),
    "MALLOC_ARENA_MAX": "1",
}


class Sandbox:
    """One prepared process. `open()` forks it into a `SandboxStudent`, one at a time.

    It starts in the background. A fork takes a while to isolate itself, so `make_ready()` starts
    the next student's in advance.

    `hides` are modules that students must not import. `slot` distinguishes sandboxes that run at
    the same time: each keeps to one processor, and as root each gets its own unprivileged user.
    `backend` is the way to isolate submissions. `files`, by relative path, are readable in the
    working directory, from which modules can then be imported. `measured=False` turns budgets off
    and lets processes keep freed memory, which is faster for labs without measured tasks. With
    `ranks`, students' processes may start others that talk to each other; if the answer takes long
    to find, `ranks` can be a function, called once the prepared process has started. `preload` are
    modules to import in advance, so that students' code needn't wait for them.
    """

    def __init__(
        self,
        hides: Sequence[str] = (),
        *,
        slot: int = 0,
        limits: Limits | None = None,
        backend: Backend | None = None,
        files: Mapping[str, Path] | None = None,
        measured: bool = True,
        ranks: bool | Callable[[], bool] = False,
        preload: Sequence[str] = EVERYTHING,
    ) -> None:
        self.limits = limits or Limits()
        self._backend = backend or Namespaces()
        self._measured = measured
        self._ranks = ranks
        self._scratch = tempfile.TemporaryDirectory(prefix="autograder-")
        self._place = Place(Path(self._scratch.name), slot)
        self._errors = self._place.scratch / "stderr"
        self._next: SandboxStudent | None = None
        self._last: SandboxStudent | None = None
        self._control, theirs = socket.socketpair()
        with theirs, self._errors.open("wb") as errors:
            launch = self._backend.launch(hides, files, self._place)
            send(self._control, self._setup(launch, preload))
            self._process = subprocess.Popen(
                launch.command,
                env={**launch.environment, **(_FREED_AT_ONCE if measured else {})},
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )

    @cached_property
    def has_gpu(self) -> bool:
        """Whether students' code can use a GPU here, as reported by the prepared process.

        Raises IsolationError if that process doesn't start.
        """
        return self._await_start()

    @property
    def isolated(self) -> bool:
        """Whether students' code is isolated at all."""
        return self._backend.way != "nothing"

    @property
    def keeps_ranks_apart(self) -> bool:
        """Whether a submission's processes can talk to each other, but not to another's."""
        return self._backend.way != "user"

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on this way of running code, which every result must carry."""
        return self._backend.notes

    def _setup(self, launch: Launch, preload: Sequence[str]) -> dict[str, Any]:
        """The settings of the prepared process, the same for every submission."""
        return {
            "way": self._backend.way,
            "measured": self._measured,
            "processor": _processor(self._place.slot),
            "files": launch.files,
            "preload": list(preload),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def open(self) -> SandboxStudent:
        """Return a fresh student, whose process hasn't run any code yet.

        Raises IsolationError if the prepared process is gone, for example killed by a system that
        ran out of memory.
        """
        self._await_end_of_last()
        student, self._next = self._next or self._fork(), None
        try:
            student.meet()
        except BaseException as error:
            student.leave()
            if isinstance(error, OSError):
                raise IsolationError(f"the sandbox is gone: {error}") from None
            raise
        return student

    def make_ready(self) -> None:
        """Start the next student's process without waiting for it.

        It isolates itself while the previous one ends and its answers are judged.
        """
        with contextlib.suppress(IsolationError):  # the next `open` reports it
            self._next = self._next or self._fork()

    def part_with(self, student: SandboxStudent) -> None:
        """Kill a student's process. If the backend allows it, only `open` waits for it to end.

        The system takes a while to end it, and answers are judged meanwhile.
        """
        if self._backend.ends_first:
            student.close()
        else:
            student.kill()
            self._last = student

    def _await_end_of_last(self) -> None:
        student, self._last = self._last, None
        if student is not None:
            student.close()

    def _fork(self) -> SandboxStudent:
        enclosure = self._backend.enclose(
            self._send_end,
            self.limits,
            self._place,
            gpu=self.has_gpu,
            ranks=self._ranks if isinstance(self._ranks, bool) else self._ranks(),
        )
        return SandboxStudent(enclosure, self.limits, measured=self._measured)

    def _send_end(self, *descriptors: int) -> socket.socket:
        """Request a fork, which gets the other end of a socket and `descriptors`."""
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            with theirs:
                socket.send_fds(self._control, [b"F"], [theirs.fileno(), *descriptors])
        except OSError as error:
            ours.close()
            raise IsolationError(f"the sandbox is gone: {error}") from None
        return ours

    def close(self) -> None:
        """End the prepared process and, with its namespace, everything it ever forked."""
        if self._next is not None:
            self._next.leave()
            self._next = None
        self._await_end_of_last()
        self._control.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._scratch.cleanup()

    def _await_start(self) -> bool:
        self._control.settimeout(_START)
        try:
            word = self._control.recv(1)
        except (TimeoutError, ConnectionResetError):  # reset: it never read its settings
            word = b""
        self._control.settimeout(None)
        if not word:
            told = self._errors.read_text(errors="replace").strip()[-2000:]
            self.close()
            raise IsolationError(
                f"the sandbox didn't start: {told or 'it ended without a message'}. "
                "Run `autograder doctor` to see which layer is missing."
            )
        return word == b"G"


def _processor(slot: int) -> int:
    """The processor for a slot, so that a busy slot doesn't slow down the others.

    A grader's slots use different processors if there are enough, and several graders start at
    different ones.
    """
    there = sorted(os.sched_getaffinity(0))
    controller = multiprocessing.parent_process()
    grader = os.getpid() if controller is None else controller.pid or 0
    return there[(slot + grader) % len(there)]
