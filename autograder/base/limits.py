"""The limits of one submission, its remaining allowance, and the ways its process ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from autograder.base.errors import AutograderError

__all__ = [
    "ANSWER_BYTES",
    "OUTPUT_BYTES",
    "PICTURE_BYTES",
    "Allowance",
    "Limits",
    "MachineBusy",
    "ProcessLost",
]

# Bounds on what one submission may leave in the grader's memory and on disk. No solved notebook of
# a lab and no answer of the answer bank takes 1.2 MB of answers or 1 kB of outputs.
ANSWER_BYTES = 3 * 2**20  # all answers, and all questions that probes ask
OUTPUT_BYTES = 2**20  # all cells' outputs, figures included, as a page shows them
PICTURE_BYTES = 2**20  # all pictures pasted into text

_MAX_SENT = 32 * 2**20  # bytes of all messages; outputs are sent again after each lost process
_MAX_CPU = 30.0  # seconds of the grader's computing on one submission's messages
_PATIENCE = 3  # wall seconds for each second that a submission may be charged
_START = 0.1  # seconds charged for starting a process


@dataclass(frozen=True)
class Limits:
    """The limits of one submission. `clock` charges seconds of computing and of sleeping."""

    #: Time for one cell.
    cell_seconds: float = 30.0
    #: Time for the whole submission.
    submission_seconds: float = 300.0
    #: Memory of all its processes together.
    memory_bytes: int = 2 * 2**30
    #: Size of its /tmp.
    tmp_bytes: int = 128 * 2**20
    #: Size of its /dev/shm.
    shm_bytes: int = 64 * 2**20
    #: Files it may create.
    files: int = 4096
    #: Processes and threads at one time.
    processes: int = 64

    @property
    def wall_seconds(self) -> float:
        """The wall time that a busy machine may take for the submission."""
        return _PATIENCE * self.submission_seconds


class ProcessLost(AutograderError):
    """The student's process has ended; the message tells the student why."""


class MachineBusy(ProcessLost):
    """The machine delayed the process for so long that its speed can't be judged."""


class Allowance:
    """What one submission may still use, summed over its processes.

    `answer_bytes` counts down for its answers and `sent_bytes` for all messages. The rest is time:
    the seconds its processes are charged, the grader's own computing (messages may be crafted to
    keep the grader busy), and, for a busy machine, wall time.
    """

    def __init__(self, limits: Limits) -> None:
        self.sent_bytes = _MAX_SENT
        self.answer_bytes = ANSWER_BYTES
        self._limits = limits
        self._seconds_left = limits.submission_seconds
        self._deadline = time.monotonic() + limits.wall_seconds
        self._cpu_deadline = time.process_time() + _MAX_CPU

    def use(self, seconds: float) -> None:
        """Charge this many seconds."""
        self._seconds_left -= seconds

    def excuse(self, cpu_seconds: float) -> None:
        """Don't count this much of the grader's computing, which no message caused."""
        self._cpu_deadline += cpu_seconds

    def use_start(self) -> None:
        """Charge the start of a process, a fixed cost."""
        self.use(_START)

    @contextmanager
    def holding_back(self, share: float) -> Iterator[None]:
        """Reserve this share of the remaining time and bytes for later."""
        seconds = share * self._seconds_left
        sent_bytes = int(share * self.sent_bytes)
        cpu_seconds = share * (self._cpu_deadline - time.process_time())
        self._seconds_left -= seconds
        self.sent_bytes -= sent_bytes
        self._cpu_deadline -= cpu_seconds
        try:
            yield
        finally:
            self._seconds_left += seconds
            self.sent_bytes += sent_bytes
            self._cpu_deadline += cpu_seconds

    def spent(self) -> ProcessLost | None:
        """Return the loss caused by a used-up allowance; None if some of everything is left."""
        if self._seconds_left <= 0:
            seconds = self._limits.submission_seconds
            return ProcessLost(f"The whole notebook may take {seconds:g} s; that time was used up.")
        if time.process_time() >= self._cpu_deadline:
            return ProcessLost("Your code's output kept the grader busy for too long.")
        if self.sent_bytes <= 0:
            sent = f"over {_MAX_SENT / 2**20:g} MiB of answers and outputs"
            return ProcessLost(f"Your code's processes sent {sent}.")
        if time.monotonic() >= self._deadline:
            seconds = self._limits.wall_seconds
            return MachineBusy(
                f"The machine was too busy to run the whole notebook: {seconds:g} s went by."
            )
        return None
