"""What one submission may use, what is left of it, and how a process ends."""

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

# What one submission may leave behind, which the grader holds in memory and on disk. Of the labs'
# solved notebooks and the bank's answers none takes 1.2 MB of answers or 1 kB of outputs.
ANSWER_BYTES = 3 * 2**20  # of all answers, and of the questions that probes put
OUTPUT_BYTES = 2**20  # of all cells' outputs, figures included, as a page shows them
PICTURE_BYTES = 2**20  # of all pictures pasted into text

_MAX_SENT = 32 * 2**20  # bytes of all messages; outputs are sent again after each lost process
_MAX_CPU = 30.0  # seconds that the grader may compute on one submission's messages
_PATIENCE = 3  # seconds by the clock for each that a submission may be charged
_START = 0.1  # seconds that each process is charged for being started


@dataclass(frozen=True)
class Limits:
    """What one submission may use. Time is what `clock` charges: computing and sleeping."""

    cell_seconds: float = 30.0
    submission_seconds: float = 300.0
    memory_bytes: int = 2 * 2**30
    tmp_bytes: int = 128 * 2**20
    shm_bytes: int = 64 * 2**20
    files: int = 4096
    processes: int = 64

    @property
    def wall_seconds(self) -> float:
        """How long a busy machine may take for the submission, by the clock."""
        return _PATIENCE * self.submission_seconds


class ProcessLost(AutograderError):
    """The student's process is no more; the message says why, in words for the student."""


class MachineBusy(ProcessLost):
    """The machine kept the process waiting for so long that nobody can say if it was in time."""


class Allowance:
    """What one submission may use in all, over the processes that it is given one by one.

    `answer_bytes` are left of its answers and `sent_bytes` of all messages. The rest of it is time:
    what its processes are charged, the grader's own computing (what is sent may be made to keep the
    grader busy), and, for a busy machine, time by the clock.
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

    def use_start(self) -> None:
        """Charge the start of a process, which costs the machine about the same each time."""
        self.use(_START)

    @contextmanager
    def holding_back(self, share: float) -> Iterator[None]:
        """Leave this share of what there is for later: of the time, and of what may be sent."""
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
        """Return the loss that follows if something is used up; None while there is some of all."""
        if self._seconds_left <= 0:
            seconds = self._limits.submission_seconds
            return ProcessLost(f"The whole notebook may take {seconds:g} s; that time was used up.")
        if time.process_time() >= self._cpu_deadline:
            return ProcessLost("What your code sent kept the grader itself busy for too long.")
        if self.sent_bytes <= 0:
            sent = f"over {_MAX_SENT / 2**20:g} MiB of answers and outputs"
            return ProcessLost(f"Your code's processes sent {sent}.")
        if time.monotonic() >= self._deadline:
            seconds = self._limits.wall_seconds
            return MachineBusy(
                f"The machine was too busy to run the whole notebook: {seconds:g} s went by."
            )
        return None
