"""The ways to shut a submission in, behind one face: what a Sandbox needs of each."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from autograder.base import memory
from autograder.base.limits import Limits

__all__ = ["Backend", "Enclosure", "Fork", "Launch"]

#: Asks the prepared process for a fork that gets these descriptors; returns our end of its socket.
Fork = Callable[..., socket.socket]


@dataclass(frozen=True)
class Launch:
    """How the prepared process is started, and where it finds an assignment's files."""

    command: Sequence[str]
    environment: Mapping[str, str]
    files: str | None = None


class Enclosure(Protocol):
    """One submission's process, shut in, as seen from outside."""

    @property
    def connection(self) -> socket.socket:
        """Our end of the socket to it."""
        ...

    @property
    def demands(self) -> Mapping[str, Any] | None:
        """What the guest shuts the process in with; None if it doesn't."""
        ...

    def meet(self, pid: int, handle: int) -> memory.Watch:
        """Return the watch over the process's memory, from now on. Comes before all that follows.

        `handle` is a pidfd of the process.
        """
        ...

    def places(self) -> list[str]:
        """Return the folders where the process may write, as they are seen from here."""
        ...

    def is_same(self) -> bool:
        """Tell whether the process still is the program that it was forked as."""
        ...

    def kill(self) -> None:
        """Kill the process and everything that it started, without waiting for their end."""
        ...

    def leave(self) -> None:
        """Do without a process that was not met; it ends by itself with nobody at the other end."""
        ...

    def close(self) -> None:
        """Let go of the process, which has ended; IsolationError if something of it stays."""
        ...


class Backend(Protocol):
    """A way to shut submissions in. It holds no state: one may serve several sandboxes."""

    @property
    def way(self) -> Literal["namespaces", "user", "nothing"]:
        """How the guest shuts a fork in."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on this way of running code, which every result has to bear."""
        ...

    @property
    def ends_first(self) -> bool:
        """Whether a submission's processes have to be gone before its answers are judged."""
        ...

    def launch(
        self,
        program: Sequence[str],
        hides: Sequence[str],
        files: Mapping[str, Path] | None,
        scratch: Path,
        slot: int,
    ) -> Launch:
        """Return how to start a Python with these arguments; makes what it sees in `scratch`.

        Raises IsolationError, with the remedy, where this way does not work.
        """
        ...

    def enclose(
        self, fork: Fork, limits: Limits, scratch: Path, slot: int, *, gpu: bool, ranks: bool
    ) -> Enclosure:
        """Return the enclosure of a submission to be; its process is being made.

        With `ranks` its processes may talk to each other, where the backend can keep that apart.
        """
        ...
