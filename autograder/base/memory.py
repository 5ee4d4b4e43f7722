"""Reads the memory of a student's processes from outside, through /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from autograder.base.proc import proc_text, stat_fields

__all__ = ["Watch", "descendants", "owner", "stack_start", "status_bytes"]


class Watch:
    """Tells whether a process and all its descendants hold more than `limit_bytes`.

    The memory held when the watch began (`start_bytes`, for the libraries it was forked with)
    doesn't count. If the process has its own network namespace, each socket counts at its capacity.
    """

    def __init__(self, pid: int, limit_bytes: int) -> None:
        self._pid = pid
        self._limit = limit_bytes
        self.start_bytes = _status_bytes(pid, "VmRSS") or 0

    def exceeded(self) -> bool:
        tree = list(_tree(self._pid))
        limit = self._limit + self.start_bytes - _socket_bytes(self._pid)
        # Resident sizes count a shared page once for each process but are cheap to read. Only if
        # they exceed the limit are proportional sizes read, which count a shared page once.
        if sum(_status_bytes(pid, "VmRSS") or 0 for pid in tree) <= limit:
            return False
        return sum(map(_proportional_bytes, tree)) > limit


def descendants(pid: int) -> list[int]:
    """Return the sorted ids of a process's descendants, without ended ones: they hold no memory."""
    _, *children = _tree(pid)
    return sorted(child for child in children if _status_bytes(child, "VmSize") is not None)


def status_bytes(pid: int, field: str) -> int:
    """Return a size of /proc/PID/status, such as VmData. Raises OSError if the process is gone."""
    found = _status_bytes(pid, field)
    if found is None:
        raise ProcessLookupError(f"process {pid} has no {field}; it ended")
    return found


def owner(pid: int) -> tuple[int, int]:
    """Return a process's real user and group ids. Raises OSError if the process is gone."""
    fields = dict(line.split(":", 1) for line in proc_text(f"/proc/{pid}/status").splitlines())
    return int(fields["Uid"].split()[0]), int(fields["Gid"].split()[0])


def stack_start(pid: int) -> int | None:
    """Return the address at which a process's stack begins; None if the system hides it.

    A fork inherits its parent's. The system gives a newly started program another, random address,
    so the address shows whether a process is still the program that it was forked as.
    """
    fields = _stat(pid)
    return int(fields[25]) or None if fields else None


def _stat(pid: int) -> list[str]:
    try:
        return stat_fields(f"/proc/{pid}")
    except OSError:
        return []


def _tree(pid: int) -> Iterator[int]:
    # Process 1 of a namespace, which is `pid`, adopts orphans, so no process leaves this tree.
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        yield current
        try:
            with os.scandir(f"/proc/{current}/task") as tasks:
                for task in tasks:
                    waiting += map(int, proc_text(f"{task.path}/children").split())
        except OSError:
            continue


def _status_bytes(pid: int, field: str) -> int | None:
    found = _field_bytes(f"/proc/{pid}/status", field)
    if found is not None:
        return found
    # A process whose first thread has ended shows no sizes there, even if other threads run on.
    try:
        with os.scandir(f"/proc/{pid}/task") as threads:
            sizes = [_field_bytes(f"{thread.path}/status", field) for thread in threads]
    except OSError:
        return None
    return next((size for size in sizes if size is not None), None)


def _proportional_bytes(pid: int) -> int:
    rollup = _field_bytes(f"/proc/{pid}/smaps_rollup", "Pss")
    return (_status_bytes(pid, "VmRSS") or 0) if rollup is None else rollup


def _socket_bytes(pid: int) -> int:
    """The capacity of the sockets in a process's network namespace; 0 for the grader's own."""
    try:
        if Path(f"/proc/{pid}/ns/net").samefile("/proc/self/ns/net"):
            return 0
        _, _, used = proc_text(f"/proc/{pid}/net/sockstat").partition("sockets: used ")
        each = int(proc_text("/proc/sys/net/core/wmem_default"))
    except OSError:
        return 0  # the process is gone
    # The last message may exceed the limit, but by no more than its size.
    return int(used.split(maxsplit=1)[0]) * 2 * each


def _field_bytes(path: str, field: str) -> int | None:
    try:
        _, found, rest = proc_text(path).partition(f"\n{field}:")
    except OSError:
        return None
    return int(rest.split(maxsplit=1)[0]) * 1024 if found else None
