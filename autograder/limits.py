"""Limits: what one submission may use, what is left of it, and how a process ends."""

from __future__ import annotations

import time
from dataclasses import dataclass

__all__ = ["Allowance", "Limits", "ProcessLost"]

_MAX_SENT = 128 * 2**20  # bytes of all messages that one submission may send
_MAX_CPU = 60.0  # seconds that the grader may compute on one submission's messages


@dataclass(frozen=True)
class Limits:
    """What one submission may use. Time is wall-clock time."""

    cell_seconds: float = 30.0
    submission_seconds: float = 300.0
    memory_bytes: int = 2 * 2**30
    tmp_bytes: int = 128 * 2**20
    shm_bytes: int = 64 * 2**20
    files: int = 4096
    processes: int = 64


class ProcessLost(Exception):
    """The student's process is no more; the message says why, in words for the student."""


class Allowance:
    """What one submission may use in all, over the processes that it is given one by one.

    `sent_bytes` are left of all messages. The rest of its time is wall-clock time, and the
    grader's own computing: what is sent may be made to keep the grader busy.
    """

    def __init__(self, limits: Limits) -> None:
        self.sent_bytes = _MAX_SENT
        self._seconds = limits.submission_seconds
        self._deadline = time.monotonic() + limits.submission_seconds
        self._cpu_deadline = time.process_time() + _MAX_CPU

    def spent(self) -> str:
        """Return which of it is used up, in words for the student; nothing while there is some."""
        if time.monotonic() >= self._deadline:
            return f"The whole notebook may take {self._seconds:g} s; that time was used up."
        if time.process_time() >= self._cpu_deadline:
            return "What your code sent kept the grader itself busy for too long."
        if self.sent_bytes <= 0:
            return f"Your code's processes sent over {_MAX_SENT / 2**20:g} MiB of answers."
        return ""
