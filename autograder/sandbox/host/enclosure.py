"""Encloses the process of a submission whose death kills all its other processes."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Mapping
from typing import Any

from autograder.base import memory
from autograder.base.limits import Limits

__all__ = ["ProcessEnclosure", "demands"]


class ProcessEnclosure:
    """A process whose death ends all other processes of its submission."""

    def __init__(
        self, connection: socket.socket, limits: Limits, demands: Mapping[str, Any] | None
    ) -> None:
        self.connection = connection
        self.demands = demands
        self._limits = limits

    def meet(self, pid: int, handle: int) -> memory.Watch:
        self._pid, self._handle = pid, handle
        self._stack = memory.stack_start(pid)
        return memory.Watch(pid, self._limits.memory_bytes)

    def places(self) -> list[str]:
        if self.demands is None:
            return []
        root = f"/proc/{self._pid}/root"
        return [f"{root}/tmp", f"{root}/dev/shm"]

    def is_same(self) -> bool:
        return memory.stack_start(self._pid) == self._stack

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def leave(self) -> None:
        self.connection.close()

    def close(self) -> None:
        self.connection.close()


def demands(limits: Limits, *, gpu: bool, ranks: bool) -> dict[str, Any]:
    """Return the limits that the guest sets before any student code runs; see `shut_in`."""
    return {
        "memory_bytes": limits.memory_bytes,
        "tmp_bytes": limits.tmp_bytes,
        "shm_bytes": limits.shm_bytes,
        "files": limits.files,
        "processes": limits.processes,
        "cpu_seconds": int(2 * limits.submission_seconds),
        "gpu": gpu,
        "ranks": ranks,
    }
