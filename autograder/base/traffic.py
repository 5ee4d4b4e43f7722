"""Counts bytes that a student's processes send, from outside through /proc."""

from __future__ import annotations

from pathlib import Path

__all__ = ["sent_bytes"]

_SENT = 8  # index among an interface's sixteen counters


def sent_bytes(pid: int) -> int | None:
    """Return the bytes sent over the loopback interface of a process's own network.

    They count since the network was created, for all processes in it, packet headers and
    acknowledgements included. None if it is the grader's own network, or the process is gone.
    """
    try:
        if Path(f"/proc/{pid}/ns/net").samefile("/proc/self/ns/net"):
            return None
        lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
    except OSError:
        return None
    return next((counters(line)[_SENT] for line in lines if line.lstrip().startswith("lo:")), None)


def counters(line: str) -> list[int]:
    """Return an interface's counters from its line of /proc/net/dev.

    >>> counters("    lo: 66 1 0 0 0 0 0 0 66 1 0 0 0 0 0 0")[8]
    66
    """
    return [int(number) for number in line.partition(":")[2].split()]
