"""A rank seen from its launcher: a process, a connection, and the messages from it."""

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

_ENDS = 0.2  # seconds that a process has to end after it closed its connection
_TELLS = 5.0  # seconds that a rank has to report where it is


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
        """The process id; 0 before the process starts."""
        return self.process.pid or 0

    def listen(self) -> None:
        """Receive its messages. Raises RankError if it ended without a result."""
        # Check for the exit first: then all messages sent before it can be read.
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
        """Return where it is. Its listening thread reports it, unless C code holds the GIL."""
        deadline = time.monotonic() + _TELLS
        with suppress(EOFError, OSError):
            self.connection.send_bytes(rank_process.WHERE)
            while self._waits is None and self.connection.poll(deadline - time.monotonic()):
                self._take(self.connection.recv())
        stack = self._waits.stack if self._waits is not None else ()
        return place_in([Place(*place) for place in reversed(stack)])

    def kill(self) -> None:
        """Kill the process and its children, and wait for its end."""
        if hasattr(os, "killpg") and self.process.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()  # it may have been too early to lead a process group
        self.process.join()
        self.process.close()
        self.connection.close()


def _end(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        with suppress(ValueError):
            return f"was killed by {signal.Signals(-exitcode).name}"
    return f"ended with exit code {exitcode}"
