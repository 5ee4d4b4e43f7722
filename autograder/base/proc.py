"""Reads the files of /proc about a process or thread (proc(5))."""

from __future__ import annotations

import os
from collections.abc import Iterator

__all__ = ["proc_text", "stat_fields"]


def proc_text(path: str) -> str:
    """Read a file of /proc without the overhead of Python's file objects.

    Raises OSError if the process or thread is gone.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        parts: Iterator[bytes] = iter(lambda: os.read(descriptor, 2**16), b"")
        return b"".join(parts).decode(errors="replace")
    finally:
        os.close(descriptor)


def stat_fields(home: str) -> list[str]:
    """Return the fields of a folder's stat file from the third on; proc(5) counts them from 1.

    Raises OSError if the process or thread is gone.
    """
    return proc_text(f"{home}/stat").rpartition(")")[2].split()
