"""A rank as its launcher sees it: a process, and what it has said."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from peakmem.core.errors import RankError
from peakmem.measure import rank_process
from peakmem.measure.rank_process import Failed, Joined, Returned, Waits
from peakmem.measure.rank_stacks import Place, place_in

__all__ = ["Rank"]

_ENDS = 0.2  # seconds in which a process that closed its connection ends
_TELLS = 5.0  # seconds that telling where it is may take


class Rank:
    """One rank's process, its number, and the launcher's end of the connection to it."""

    def __init__(self, number: int, process: BaseProcess, connection: Connection) -> None:
        self.number = number
        self.process = process
        self.connection = connection
        self.has_joined = False
        self.said: Returned | Failed | None = None
        self._waits: Waits | None = None

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self.process.pid or 0

    def listen(self) -> None:
        """Take what it has said; RankError if it ended without a word."""
        # First the exit: what was said before it is then there to be read.
        ended = self.process.exitcode is not None
        try:
            while self.said is None and self.connection.poll():
                self._take(self.connection.recv())
        except (EOFError, OSError):
            self.process.join(_ENDS)
            ended = True
        if ended and not isinstance(self.said, Failed):
            raise RankError(
                f"rank {self.number} {_end(self.process.exitcode)} before all ranks had returned",
                rank=self.number,
            )

    def _take(self, message: Joined | Waits | Returned | Failed) -> None:
        if isinstance(message, Joined):
            self.has_joined = True
        elif isinstance(message, Waits):
            self._waits = message
        else:
            self.said = message

    def place(self) -> str:
        """Say where it is: its own thread that listens tells, unless C code never lets it run."""
        deadline = time.monotonic() + _TELLS
        with suppress(EOFError, OSError):
            self.connection.send_bytes(rank_process.WHERE)
            while self._waits is None and self.connection.poll(deadline - time.monotonic()):
                self._take(self.connection.recv())
        stack = self._waits.stack if self._waits is not None else ()
        return place_in([Place(*place) for place in reversed(stack)])

    def kill(self) -> None:
        """Kill the process and what it started, and wait for its end."""
        if hasattr(os, "killpg") and self.process.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()  # it may not have had the time to lead a group
        self.process.join()
        self.process.close()
        self.connection.close()


def _end(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        with suppress(ValueError):
            return f"was killed by {signal.Signals(-exitcode).name}"
    return f"ended with exit code {exitcode}"
