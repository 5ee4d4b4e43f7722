"""One rank: a process that joins the others, calls a function, and waits until all are done."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cloudpickle
import torch
import torch.distributed as dist

from peakmem.measure.rank_stacks import is_library

__all__ = ["GO", "WHERE", "Failed", "Joined", "Returned", "Waits", "Work", "run_rank"]

GO = b"go"  # from the launcher: all ranks have joined
WHERE = b"where"  # from the launcher: report where the function is

Stack = Sequence[tuple[str, int, str]]  # (file, line, function), the outermost call first

_LOOPBACK = "127.0.0.1"
_BACKEND = "loopback"  # our name for gloo on that address only
_LIBRARY = str(Path(__file__).parents[1])  # stacks leave out this library's frames
_JOIN = timedelta(minutes=5)  # limit of joining and of collectives; the launcher's is shorter


@dataclass(frozen=True)
class Work:
    """The call that each rank makes; pickled if the ranks aren't forks of the launcher."""

    #: The function; None if it is in `pickled`.
    function: Callable[..., Any] | None
    #: Its arguments, likewise.
    args: tuple[Any, ...] = ()
    #: The function and its arguments, pickled.
    pickled: bytes = b""

    @classmethod
    def packed(cls, function: Callable[..., Any], args: tuple[Any, ...]) -> Work:
        """Return work that any process can unpack; a notebook's functions travel as code."""
        return cls(None, pickled=cloudpickle.dumps((function, args)))

    def unpacked(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function and its arguments; unpickling may import modules."""
        if self.function is not None:
            return self.function, self.args
        function, args = pickle.loads(self.pickled)
        return function, args


@dataclass(frozen=True)
class Joined:
    """Message: the rank has met all others."""


@dataclass(frozen=True)
class Waits:
    """Message: where a rank that hasn't returned is."""

    #: The rank's stack.
    stack: Stack


@dataclass(frozen=True)
class Returned:
    """Message: the function's result."""

    #: The result, pickled.
    pickled: bytes


@dataclass(frozen=True)
class Failed:
    """Message: the exception that the function raised, and where."""

    #: The exception's class.
    kind: str
    #: Its text.
    message: str
    #: Where it was raised.
    stack: Stack
    #: Whether another rank's death may be the cause: torch raises a RuntimeError for a lost
    #: connection.
    may_follow: bool


def run_rank(
    work: Work,
    rank: int,
    world_size: int,
    folder: Path,
    connection: Connection,
    others: Sequence[Connection],
) -> None:
    """Run one rank, and then wait to be killed.

    If a rank ended on its own, it would close connections that others still use, and a collective
    that one rank skips would look like a lost connection. `others` are the launcher's ends of
    connections, which a fork inherits.
    """
    for inherited in others:
        inherited.close()
    if hasattr(os, "setsid"):
        # So a notebook's interrupt reaches only the launcher, and a rank's children die with it.
        os.setsid()
    go = threading.Event()
    listening = (connection, go, threading.get_ident())
    threading.Thread(target=_listen, args=listening, daemon=True).start()
    share = max(1, (os.cpu_count() or 1) // world_size)
    torch.set_num_threads(min(share, torch.get_num_threads()))  # never more than configured
    try:
        function, args = work.unpacked()
        _join(rank, world_size, folder / "store")
        connection.send(Joined())
        go.wait()
        said: Returned | Failed = Returned(cloudpickle.dumps(function(*args)))
    except BaseException as error:
        said = _failed(error)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    connection.send(said)
    threading.Event().wait()


def _join(rank: int, world_size: int, meeting: Path) -> None:
    """Join torch.distributed on this machine only; ranks meet through a file.

    A network address would be open to others, and meeting over it would count as traffic.
    """
    dist.Backend.register_backend(_BACKEND, _over_loopback, devices=["cpu"])
    store = dist.FileStore(str(meeting), world_size)  # type: ignore[attr-defined]
    dist.init_process_group(_BACKEND, store=store, rank=rank, world_size=world_size, timeout=_JOIN)
    dist.barrier()


def _over_loopback(
    store: Any, rank: int, world_size: int, timeout: timedelta
) -> dist.ProcessGroupGloo:
    """Return gloo's process group on the loopback address; gloo's default is the host's address.

    It has one thread for collectives, not gloo's two. A thread releases a collective's tensors some
    time after the collective has returned, but before it begins the next one. With one thread, a
    rank's memory doesn't depend on when a second thread gets to run.
    """
    options = dist.ProcessGroupGloo._Options()  # type: ignore[attr-defined]
    options._devices = [dist.ProcessGroupGloo.create_device(hostname=_LOOPBACK)]
    options._timeout = timeout
    options._threads = 1
    return dist.ProcessGroupGloo(store, rank, world_size, options)


def _failed(error: BaseException) -> Failed:
    stack = _plain(traceback.extract_tb(error.__traceback__))
    return Failed(
        kind=type(error).__name__,
        message=str(error),
        stack=[one for one in stack if not (one[0].startswith(_LIBRARY) or is_library(one[0]))],
        may_follow=isinstance(error, RuntimeError),
    )


def _plain(stack: traceback.StackSummary) -> Stack:
    return [(frame.filename, frame.lineno or 0, frame.name) for frame in stack]


def _listen(connection: Connection, go: threading.Event, thread: int) -> None:
    """Serve the launcher's messages about `thread`; end this process when the launcher is gone."""
    with suppress(EOFError, OSError):
        while True:
            said = connection.recv_bytes()
            if said == GO:
                go.set()
            elif said == WHERE:
                frame = sys._current_frames()[thread]
                connection.send(Waits(_plain(traceback.extract_stack(frame))))
    os._exit(1)
