"""Detects processes that do nothing, as deadlocked ranks do; works on Linux only."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Stillness"]

_Trace = tuple[str, ...]


class Stillness:
    """Measures how long a group of processes has been still.

    A process is still while all its threads sleep, its main thread hasn't run, and it has read and
    written nothing. Other threads may wake for a moment, as gloo's does. A busy machine doesn't
    make processes look still: a thread that waits for a processor or a disk isn't asleep.
    """

    def __init__(self) -> None:
        self._seen: list[_Trace] | None = None
        self._since = time.monotonic()

    def seconds(self, pids: Sequence[int]) -> float:
        """Return for how many seconds all these processes have been still; 0 if unknown."""
        seen = _traces(pids)
        if seen is None or seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since


def _traces(pids: Sequence[int]) -> list[_Trace] | None:
    """Return counters that change when processes run; None if one is awake, or if unknown."""
    found = []
    try:
        for pid in pids:
            threads = Path(f"/proc/{pid}/task")
            states = [(one / "stat").read_text() for one in threads.iterdir()]
            if any(state.rpartition(")")[2].split()[0] != "S" for state in states):
                return None
            moved = Path(f"/proc/{pid}/io").read_text().splitlines()
            found.append((str(pid), (threads / str(pid) / "schedstat").read_text(), *moved))
    except OSError:
        return None
    return found
