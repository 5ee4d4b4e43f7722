"""One rank: a process that joins the others, calls a function, and holds on until all are done."""

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

__all__ = ["GO", "WHERE", "Failed", "Joined", "Returned", "Waits", "Work", "run_rank"]

GO = b"go"  # what the launcher says when all have joined
WHERE = b"where"  # and what it asks when the function does not return

Stack = Sequence[tuple[str, int, str]]  # (file, line, function), the outermost call first

_LOOPBACK = "127.0.0.1"
_BACKEND = "loopback"  # the name of gloo on that address alone
_LIBRARY = str(Path(__file__).parents[1])  # whose calls lead to the function and tell nothing
_JOIN = timedelta(minutes=5)  # for all ranks to meet, and for a collective: the launcher is earlier


@dataclass(frozen=True)
class Work:
    """What each rank calls; `pickled` holds it instead if the rank is no fork of the launcher."""

    function: Callable[..., Any] | None
    args: tuple[Any, ...] = ()
    pickled: bytes = b""

    @classmethod
    def packed(cls, function: Callable[..., Any], args: tuple[Any, ...]) -> Work:
        """Return work that any process can unpack: what a notebook defines goes by its code."""
        return cls(None, pickled=cloudpickle.dumps((function, args)))

    def unpacked(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function and its arguments; unpickling may import modules."""
        if self.function is not None:
            return self.function, self.args
        function, args = pickle.loads(self.pickled)
        return function, args


@dataclass(frozen=True)
class Joined:
    """A rank has met all others."""


@dataclass(frozen=True)
class Waits:
    """Where a rank is that has not returned."""

    stack: Stack


@dataclass(frozen=True)
class Returned:
    """What the function returned."""

    pickled: bytes


@dataclass(frozen=True)
class Failed:
    """What the function raised, and where.

    `may_follow` says that it may come from the end of another rank: torch raises a RuntimeError
    for a lost connection.
    """

    kind: str
    message: str
    stack: Stack
    may_follow: bool


def run_rank(
    work: Work,
    rank: int,
    world_size: int,
    folder: Path,
    connection: Connection,
    others: Sequence[Connection],
) -> None:
    """Be one rank, and wait to be killed when all is said.

    A rank that ended on its own would close connections that others still use, so that a step that
    one rank skips would look like a lost connection. `others` are the launcher's ends of
    connections, which a fork has inherited.
    """
    for inherited in others:
        inherited.close()
    if hasattr(os, "setsid"):
        os.setsid()  # a notebook's interrupt is the launcher's; what a rank starts ends with it
    go = threading.Event()
    listening = (connection, go, threading.get_ident())
    threading.Thread(target=_listen, args=listening, daemon=True).start()
    share = max(1, (os.cpu_count() or 1) // world_size)
    torch.set_num_threads(min(share, torch.get_num_threads()))  # who asked for one gets one
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
    """Join torch.distributed on this machine alone. A file is what ranks meet by.

    Over a network address they would also be open to others, and what they told each other to meet
    would count as traffic.
    """
    dist.Backend.register_backend(_BACKEND, _over_loopback, devices=["cpu"])
    store = dist.FileStore(str(meeting), world_size)  # type: ignore[attr-defined]
    dist.init_process_group(_BACKEND, store=store, rank=rank, world_size=world_size, timeout=_JOIN)
    dist.barrier()


def _over_loopback(
    store: Any, rank: int, world_size: int, timeout: timedelta
) -> dist.ProcessGroupGloo:
    """Return gloo's process group. By itself gloo takes whatever address the host's name has.

    It has one thread for collectives, where gloo takes two: a thread lets go of a collective's
    tensors some time after the collective has returned, but before it begins the next. So what a
    rank holds does not depend on when a second thread gets to run.
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
        stack=[place for place in stack if not place[0].startswith(_LIBRARY)],
        may_follow=isinstance(error, RuntimeError),
    )


def _plain(stack: traceback.StackSummary) -> Stack:
    return [(frame.filename, frame.lineno or 0, frame.name) for frame in stack]


def _listen(connection: Connection, go: threading.Event, thread: int) -> None:
    """Hear when to go on, and tell where `thread` is; end this process when nobody is left."""
    with suppress(EOFError, OSError):
        while True:
            said = connection.recv_bytes()
            if said == GO:
                go.set()
            elif said == WHERE:
                frame = sys._current_frames()[thread]
                connection.send(Waits(_plain(traceback.extract_stack(frame))))
    os._exit(1)
