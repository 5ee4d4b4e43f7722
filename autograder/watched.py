"""Watched: the memory of a measured exercise, seen from outside its process."""

from __future__ import annotations

from autograder import memory
from autograder.limits import ProcessLost

__all__ = ["Watched"]

# Libraries' code that is touched for the first time while a process is watched becomes resident
# too: 1 to 10 MiB. At most so much is believed to be that, for a student could touch more of it
# once the memory of the peak is given back.
_CODE_BYTES = 8 * 2**20


class Watched:
    """By how much the memory of a process and its children rose, seen from outside.

    Between WATCH and UNWATCH, as the probe asks; or in the whole request where it never asked.
    A probe that does not ask may have been replaced, and the task then has to see that figure.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before: int | None
        self._code: int
        self._children: int
        self._most_children: int
        self._written: int
        self._rise: int | None = None
        self._held = 0  # without what was written
        self._asked = False
        self._start()

    def begin(self) -> None:
        if self._asked:
            self.end()  # beginning again must not make an earlier rise forgotten
        self._asked = True
        self._start()

    def end(self) -> None:
        self.look()
        if self._before is None:
            return
        peak = memory.peak_bytes(self._pid)
        if peak is None:
            raise ProcessLost("Your code ended its own process.")
        rise = peak - self._before + self._most_children - self._children
        rise -= min(max(memory.code_bytes(self._pid) - self._code, 0), _CODE_BYTES)
        self._held = max(rise, self._held)
        # Files in memory are no process's, and what was written may be removed again by now.
        # What is sent over a socket, as the answers are, is not counted as written.
        rise += (memory.written_bytes(self._pid) or 0) - self._written
        self._rise = max(rise, self._rise or 0)

    def look(self) -> None:
        """Note what children hold now: those that are gone later leave no peak behind."""
        self._most_children = max(self._most_children, memory.children_bytes(self._pid))

    def rise_bytes(self) -> int | None:
        if self._rise is None:
            self.end()
        return self._rise

    @property
    def written_bytes(self) -> int:
        """How much of the rise is files; of several watches, what no memory explains."""
        return max((self._rise or 0) - self._held, 0)

    def _start(self) -> None:
        self._before = memory.reset_peak(self._pid)
        self._code = memory.code_bytes(self._pid)
        self._children = self._most_children = memory.children_bytes(self._pid)
        self._written = memory.written_bytes(self._pid) or 0
