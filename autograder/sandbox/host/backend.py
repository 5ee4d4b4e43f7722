"""The interface of the isolation backends: what a Sandbox needs from each."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from autograder.base import memory
from autograder.base.limits import Limits

__all__ = ["PROGRAM", "Backend", "Enclosure", "Files", "Fork", "Launch", "Place"]

#: Python's arguments for the prepared process.
PROGRAM = ("-m", "autograder.sandbox.guest.server")
#: An assignment's files by relative path.
Files = Mapping[str, Path]
#: Asks the prepared process for a fork with these descriptors; returns our end of its socket.
Fork = Callable[..., socket.socket]


@dataclass(frozen=True)
class Place:
    """What sets a sandbox apart from others that run at the same time."""

    #: A folder of its own.
    scratch: Path
    #: Its number.
    slot: int


@dataclass(frozen=True)
class Launch:
    """How to start the prepared process."""

    #: The command line.
    command: Sequence[str]
    #: Its environment variables.
    environment: Mapping[str, str]
    #: Where the process finds the assignment's files; None if there are none.
    files: str | None = None


class Enclosure(Protocol):
    """One submission's isolated process, seen from outside."""

    @property
    def connection(self) -> socket.socket:
        """Our end of the socket to it."""
        ...

    @property
    def demands(self) -> Mapping[str, Any] | None:
        """The limits that the guest sets before any student code runs; None if it sets none."""
        ...

    def meet(self, pid: int, handle: int) -> memory.Watch:
        """Start watching the process's memory, and return the watch. Call this first.

        `handle` is a pidfd of the process.
        """
        ...

    def places(self) -> list[str]:
        """Return the folders that the process can write to, as paths seen from here."""
        ...

    def is_same(self) -> bool:
        """Tell whether the process still runs the program that it was forked as."""
        ...

    def kill(self) -> None:
        """Kill the process and everything it started, without waiting for their end."""
        ...

    def leave(self) -> None:
        """Abandon a process before `meet`; it exits by itself once its socket is closed."""
        ...

    def close(self) -> None:
        """Release the ended process. Raises IsolationError if something of it remains."""
        ...


class Backend(Protocol):
    """A way to isolate submissions. It holds no state, so one may serve several sandboxes."""

    @property
    def way(self) -> Literal["namespaces", "user", "nothing"]:
        """The isolation that the guest sets up in a fork."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on this way of running code, which every result must carry."""
        ...

    @property
    def ends_first(self) -> bool:
        """Whether a submission's processes must have ended before its answers are judged."""
        ...

    def launch(self, hides: Sequence[str], files: Files | None, place: Place) -> Launch:
        """Return how to start the prepared process; prepares files in the place's folder.

        Raises IsolationError, with the remedy, if this way doesn't work here.
        """
        ...

    def enclose(
        self, fork: Fork, limits: Limits, place: Place, *, gpu: bool, ranks: bool
    ) -> Enclosure:
        """Return the enclosure of a new submission, while its process is still starting.

        With `ranks`, its processes may talk to each other if the backend can isolate that.
        """
        ...
