"""Runs a student's cells and probes where they can reach nothing and harm nobody.

bubblewrap makes a file system of Python and the course's library, read-only, without network,
home, gradebook, other submissions, solutions or tasks. A process prepared in there (`inside`) is
forked for each submission into namespaces of its own (`jail`); `sandbox_student` deals with it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from autograder.base.limits import Limits
from autograder.sandbox.host.isolation import IsolationError, command, lay_out
from autograder.sandbox.host.student import SandboxStudent

__all__ = ["Sandbox"]

_START = 120.0  # seconds that preparing may take

# Fixed, or it grows with use, and freed tensors stay on the heap, where a budget counts them. One
# heap for all threads: those of their own would each map 64 MiB.
_FREED_AT_ONCE = {
    "MALLOC_MMAP_THRESHOLD_": str(64 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(64 * 1024),
    "MALLOC_ARENA_MAX": "1",
}


class Sandbox:
    """One prepared process. `open()` forks it into a `SandboxStudent`, one at a time.

    A fork takes a while to shut itself in: `make_ready()` lets the next student's begin.

    `hides` are modules that the students must not import. `slot` tells sandboxes that run at the
    same time apart: each keeps to one processor, and as root each gets an unprivileged user of its
    own. `isolated=False` runs the code with no protection at all. `files`, by their paths from
    there, are to be read in the working directory, from which modules are imported then too.
    `measured=False` does without budgets, and lets processes keep memory that they freed, which is
    faster: for labs of which no task is measured. `notes` are sentences on this way of running
    code, which every result has to bear.
    """

    notes: tuple[str, ...] = ()

    def __init__(
        self,
        hides: Sequence[str] = (),
        *,
        slot: int = 0,
        limits: Limits | None = None,
        isolated: bool = True,
        files: Mapping[str, Path] | None = None,
        measured: bool = True,
    ) -> None:
        self.limits = limits or Limits()
        self.isolated = isolated
        self._measured = measured
        self._scratch = tempfile.TemporaryDirectory(prefix="autograder-")
        self._errors = Path(self._scratch.name) / "stderr"
        self._control, theirs = socket.socketpair()
        with theirs, self._errors.open("wb") as errors:
            program = ["-m", "autograder.sandbox.guest.server", str(theirs.fileno())]
            program.append(f"--processor={_processor(slot)}")
            if not isolated:
                program.append("--bare")
            if files is not None:
                program.append(
                    f"--files={lay_out(files, Path(self._scratch.name), isolated=isolated)}"
                )
            arguments, environment = self._command(program, hides, slot)
            self._process = subprocess.Popen(
                arguments,
                env={**environment, **(_FREED_AT_ONCE if measured else {})},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        self._next: SandboxStudent | None = None
        self._last: SandboxStudent | None = None
        self.has_gpu = self._await_start()

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
        """Kill a student's process, and do not wait until all of it is gone: `open` does.

        The system takes its time for that, in which the answers are judged.
        """
        student.kill()
        self._last = student

    def _await_end_of_last(self) -> None:
        student, self._last = self._last, None
        if student is not None:
            student.close()

    def _fork(self) -> SandboxStudent:
        connection = self._send_end()
        return SandboxStudent(
            connection,
            self.limits,
            isolated=self.isolated,
            gpu=self.has_gpu,
            measured=self._measured,
        )

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

    def _command(
        self, program: Sequence[str], hides: Sequence[str], slot: int
    ) -> tuple[list[str], dict[str, str]]:
        scratch = Path(self._scratch.name)
        return command(program, hides, slot, scratch, isolated=self.isolated)

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
        except TimeoutError:
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
