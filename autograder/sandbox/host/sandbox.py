"""Runs a student's cells and probes where they can reach nothing and harm nobody.

A backend lays out what students' code sees: Python and the course's library, read-only, without
network, home, gradebook, other submissions, solutions or tasks. A process prepared in there
(`guest/server.py`) is forked for each submission, and each fork is shut in by itself.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from autograder.base.limits import Limits
from autograder.sandbox.guest.wire import send
from autograder.sandbox.host.backend import Backend, Launch
from autograder.sandbox.host.isolation import IsolationError
from autograder.sandbox.host.namespaces import Namespaces
from autograder.sandbox.host.student import SandboxStudent

__all__ = ["EVERYTHING", "Sandbox"]

#: what any notebook of the course's own labs may import
EVERYTHING = ("torch", "torch._dynamo", "matplotlib.pyplot", "tqdm.auto")

_START = 120.0  # seconds that preparing may take
_GUEST = ("-m", "autograder.sandbox.guest.server")

# Fixed, or it grows with use, and freed tensors stay on the heap, where a budget counts them. One
# heap for all threads: those of their own would each map 64 MiB.
_FREED_AT_ONCE = {
    "MALLOC_MMAP_THRESHOLD_": str(64 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(64 * 1024),
    "MALLOC_ARENA_MAX": "1",
}


class Sandbox:
    """One prepared process. `open()` forks it into a `SandboxStudent`, one at a time.

    It gets ready while the caller goes on, up to the first use. A fork takes a while to shut itself
    in: `make_ready()` lets the next student's begin.

    `hides` are modules that the students must not import. `slot` tells sandboxes that run at the
    same time apart: each keeps to one processor, and as root each gets an unprivileged user of its
    own. `backend` is the way to shut submissions in. `files`, by their paths from there, are to be
    read in the working directory, from which modules are imported then too. `measured=False` does
    without budgets, and lets processes keep memory that they freed, which is faster: for labs of
    which no task is measured. With `ranks`, students' processes may start others that talk to each
    other. `preload` are the modules that students' code need not wait for.
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
        ranks: bool = False,
        preload: Sequence[str] = EVERYTHING,
    ) -> None:
        self.limits = limits or Limits()
        self._backend = backend or Namespaces()
        self._slot = slot
        self._measured = measured
        self._ranks = ranks
        self._scratch = tempfile.TemporaryDirectory(prefix="autograder-")
        self._errors = self._folder / "stderr"
        self._next: SandboxStudent | None = None
        self._last: SandboxStudent | None = None
        self._control, theirs = socket.socketpair()
        with theirs, self._errors.open("wb") as errors:
            launch = self._backend.launch(_GUEST, hides, files, self._folder, slot)
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
        """Whether students' code can use a GPU here, as the prepared process says once it is ready.

        Raises IsolationError if it does not start.
        """
        return self._await_start()

    @property
    def isolated(self) -> bool:
        """Whether students' code is shut in at all."""
        return self._backend.way != "nothing"

    @property
    def keeps_ranks_apart(self) -> bool:
        """Whether processes can talk to each other here and to no other submission's."""
        return self._backend.way != "user"

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on this way of running code, which every result has to bear."""
        return self._backend.notes

    @property
    def _folder(self) -> Path:
        return Path(self._scratch.name)

    def _setup(self, launch: Launch, preload: Sequence[str]) -> dict[str, Any]:
        """All that the prepared process is told: what stays the same for every submission."""
        return {
            "way": self._backend.way,
            "processor": _processor(self._slot),
            "files": launch.files,
            "preload": list(preload),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> SandboxStudent:
        """Return a fresh student, in whose process nothing has run yet.

        Raises IsolationError where the prepared process is no more: a system that runs out of
        memory may have killed it.
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
        """Have the process of the next student made, and do not wait for it.

        It shuts itself in while the one before it ends, and while its answers are judged.
        """
        with contextlib.suppress(IsolationError):  # which the next student's `open` will tell
            self._next = self._next or self._fork()

    def part_with(self, student: SandboxStudent) -> None:
        """Kill a student's process. Where the backend allows it, only `open` waits for its end.

        The system takes its time for that, in which the answers are judged.
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
            self._folder,
            self._slot,
            gpu=self.has_gpu,
            ranks=self._ranks,
        )
        return SandboxStudent(enclosure, self.limits, measured=self._measured)

    def _send_end(self, *descriptors: int) -> socket.socket:
        """Ask for a fork, which gets the other end of a socket, and `descriptors`."""
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
        """End the prepared process, and with its namespace everything that it ever forked."""
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
        except (TimeoutError, ConnectionResetError):  # reset: it never read what it was told
            word = b""
        self._control.settimeout(None)
        if not word:
            told = self._errors.read_text(errors="replace").strip()[-2000:]
            self.close()
            raise IsolationError(
                f"the sandbox did not start: {told or 'it ended without a word'}. "
                "Run `autograder doctor` to see which layer is missing."
            )
        return word == b"G"


def _processor(slot: int) -> int:
    """A processor of this machine's for a slot: what crowds its own keeps no other slot waiting.

    Slots of one grader lie on different ones as far as there are so many, and those of several
    graders begin at different ones.
    """
    there = sorted(os.sched_getaffinity(0))
    controller = multiprocessing.parent_process()
    grader = os.getpid() if controller is None else controller.pid or 0
    return there[(slot + grader) % len(there)]
