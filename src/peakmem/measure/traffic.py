"""Bytes that a process has written; in a rank, most of them go to other ranks."""

from __future__ import annotations

from pathlib import Path

__all__ = ["written_bytes"]


def written_bytes(pid: int | None = None) -> int | None:
    """Return the bytes that a process has written to files, pipes and connections so far.

    `pid` defaults to this process. The count includes what gloo and Python's files write, but not
    what send() and sendmsg() send. None if the system doesn't count the bytes, or if this process
    may not read the count. Raises ProcessLookupError if the process is gone. Source: proc(5),
    wchar.
    """
    try:
        lines = Path(f"/proc/{'self' if pid is None else pid}/io").read_text().splitlines()
    except FileNotFoundError:
        if pid is None:
            return None
        raise ProcessLookupError(f"process {pid} has ended") from None
    except PermissionError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("wchar:")), None)
