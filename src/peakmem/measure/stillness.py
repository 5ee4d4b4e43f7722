"""Whether processes do nothing at all, as those that wait for each other; told on Linux only."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Stillness"]

_Trace = tuple[str, ...]


class Stillness:
    """Tells how long a group of processes has been still.

    A process is still while its first thread sleeps and has not run, and it has read and written
    nothing. A busy machine makes nobody look still: a thread that waits for a processor, or for a
    disk, does not sleep.
    """

    def __init__(self) -> None:
        self._seen: list[_Trace] | None = None
        self._since = time.monotonic()

    def seconds(self, pids: Sequence[int]) -> float:
        """Return for how many seconds all of these have been still; 0 where that can't be known."""
        seen = _traces(pids)
        if seen is None or seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since


def _traces(pids: Sequence[int]) -> list[_Trace] | None:
    """What changes as processes run; None if one of them is awake, or the system doesn't tell."""
    found = []
    try:
        for pid in pids:
            thread = Path(f"/proc/{pid}/task/{pid}")
            state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "S":
                return None
            moved = Path(f"/proc/{pid}/io").read_text().splitlines()
            found.append((str(pid), (thread / "schedstat").read_text(), *moved))
    except OSError:
        return None
    return found
