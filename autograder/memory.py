"""Memory of a student's processes, read from outside through /proc."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    *("Watch", "children_bytes", "code_bytes", "peak_bytes", "reset_peak"),
    *("stack_start", "written_bytes"),
]


class Watch:
    """Tells whether a process and all its descendants hold more than `limit_bytes`.

    What the process held when the watch began (the libraries it was forked with) does not count.
    """

    def __init__(self, pid: int, limit_bytes: int) -> None:
        self._pid = pid
        self._limit = limit_bytes
        self._start = _status_bytes(pid, "VmRSS") or 0

    def exceeded(self) -> bool:
        tree = list(_tree(self._pid))
        # Resident sizes count a shared page once for each process. They are cheap to read; only
        # where they alarm are the proportional sizes read, which count it once in all.
        if sum(_status_bytes(pid, "VmRSS") or 0 for pid in tree) - self._start <= self._limit:
            return False
        return sum(map(_proportional_bytes, tree)) - self._start > self._limit


def reset_peak(pid: int) -> int | None:
    """Set the peak resident size (VmHWM) back to the resident size; return that, or None."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        return None
    return _status_bytes(pid, "VmRSS")


def peak_bytes(pid: int) -> int | None:
    """Return the peak resident size since `reset_peak`, or None where it cannot be read."""
    return _status_bytes(pid, "VmHWM")


def code_bytes(pid: int) -> int:
    """Return the resident pages of files: libraries' code, as far as it has been touched."""
    return _status_bytes(pid, "RssFile") or 0


def children_bytes(pid: int) -> int:
    """Return what a process's descendants hold, and what those that it waited for have touched.

    An upper bound: a page that several of them share counts in each.
    """
    _, *children = _tree(pid)
    held = sum((_status_bytes(c, "VmHWM") or 0) + (written_bytes(c) or 0) for c in children)
    return held + _reaped_bytes(pid)


def written_bytes(pid: int) -> int | None:
    """Return all that a process and the children that it waited for ever wrote, to anything.

    What is written to a file in memory is nobody's resident memory. None where the system cannot
    tell.
    """
    try:
        for line in _text(f"/proc/{pid}/io").splitlines():
            if line.startswith("wchar:"):
                return int(line.split()[1])
    except OSError:
        pass
    return None


def stack_start(pid: int) -> int | None:
    """Return the address at which a process's stack begins; None where the system does not tell.

    Forks have it from their parent. A program that is started anew gets another, drawn by the
    system, so that it tells whether a process still is the program that it was forked as.
    """
    fields = _stat(pid)
    return int(fields[25]) or None if fields else None


def _reaped_bytes(pid: int) -> int:
    fields = _stat(pid)  # cminflt, cmajflt: pages that children touched
    return (int(fields[8]) + int(fields[10])) * resource.getpagesize() if fields else 0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on; proc(5) counts them from 1."""
    try:
        return _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except OSError:
        return []


def _tree(pid: int) -> Iterator[int]:
    # Orphans go to process 1 of their namespace, which is `pid`: nobody leaves this tree.
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        yield current
        try:
            with os.scandir(f"/proc/{current}/task") as tasks:
                for task in tasks:
                    waiting += map(int, _text(f"{task.path}/children").split())
        except OSError:
            continue


def _status_bytes(pid: int, field: str) -> int | None:
    return _field_bytes(f"/proc/{pid}/status", field)


def _proportional_bytes(pid: int) -> int:
    rollup = _field_bytes(f"/proc/{pid}/smaps_rollup", "Pss")
    return (_status_bytes(pid, "VmRSS") or 0) if rollup is None else rollup


def _field_bytes(path: str, field: str) -> int | None:
    try:
        _, found, rest = _text(path).partition(f"\n{field}:")
    except OSError:
        return None
    return int(rest.split(maxsplit=1)[0]) * 1024 if found else None


def _text(path: str) -> str:
    """A file of /proc, without what Python's files do besides: hundreds are read a submission."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        parts = iter(lambda: os.read(descriptor, 2**16), b"")
        return b"".join(parts).decode(errors="replace")
    finally:
        os.close(descriptor)
