"""A grading process: how a controller starts and watches it, and what it does.

It is the one gate by which the bytes of a submission come in: whatever reads them, or what was made
of them, runs in such a process, within bounds of computing and memory, and is killed beyond them.
Killed, and not interrupted: what takes for ever may be code in C that no exception reaches, and
what was read in part must not count as read.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from autograder.base import memory

__all__ = ["TRIES", "Broken", "GradingProcess", "Work", "first_ready"]

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
MakeWorker = Callable[[int], AbstractContextManager[Callable[[Item], Outcome]]]

TRIES = 2  # processes that one item may end
_LOOK = 0.1  # seconds between looks at the memory


@dataclass(frozen=True)
class Work(Generic[Item, Outcome]):
    """What is done with each item, and how long that may take.

    A process that computes on one item for over `cpu_seconds`, holds over `memory_bytes` of its
    own, or has an item for over `wall_seconds` is ended. Processes that it started are left out.
    """

    #: Called as `make_worker(slot)` in the worker's process, with a slot number that no other
    #: worker has at that time. Its context is left when the work is done, or the controller dies.
    make_worker: MakeWorker[Item, Outcome]
    #: Modules that the processes share.
    preload: Sequence[str] = ()
    #: Hours of work may hide in a few hostile bytes.
    cpu_seconds: float = 60.0
    memory_bytes: int = 2**30
    wall_seconds: float = 3600.0


@dataclass(frozen=True)
class Broken:
    """A process's last word."""

    #: What ended it.
    reason: str
    #: Whether another process may fare better.
    again: bool = True


class GradingProcess(Generic[Item]):
    """A process that does one item after another, as its controller sees it.

    `item` is what it is doing, None if it waits; `tries` counts the processes that were given
    that item, this one included.
    """

    def __init__(self, work: Work[Item, Any], slot: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(work.preload))
        _start_server()
        self.slot = slot
        self.item: Item | None = None
        self.tries = 0
        self.deadline = math.inf
        self.connection, theirs = context.Pipe()
        self._wall_seconds = work.wall_seconds
        self._memory_bytes = work.memory_bytes
        self._killed_for: Broken | None = None
        arguments = (theirs, work.make_worker, slot, work.cpu_seconds)
        self._process: Any = context.Process(target=_work, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def hand(self, item: Item, tries: int) -> None:
        """Have it do this item, which it must not take too long for."""
        self.item, self.tries = item, tries
        self.deadline = time.monotonic() + self._wall_seconds
        with suppress(OSError):  # one that is dead already shows when it is waited for
            self.connection.send(item)

    def kill_beyond_bounds(self) -> None:
        """End it where its time for the item is over, or its memory."""
        if time.monotonic() >= self.deadline:
            self._kill_for(_LATE)
        elif self._own_bytes() > self._memory_bytes:
            self._kill_for(_TOO_LARGE)

    def _own_bytes(self) -> int:
        try:
            return memory.status_bytes(self._process.pid, "RssAnon")
        except OSError:  # it has just ended
            return 0

    def _kill_for(self, reason: Broken) -> None:
        self._killed_for = reason
        self._process.kill()  # one that is stopped, not busy, would never see a kinder signal
        self._process.join()

    def outcome(self) -> Any:
        """What it has to say once it is ready; `Broken` where it is no more after that."""
        try:
            outcome = self.connection.recv()
        except (EOFError, OSError):
            self.stop()
            return self._killed_for or _death(self._process.exitcode)
        if isinstance(outcome, Broken):
            self.stop()
        return outcome

    def stop(self) -> None:
        """End it, in good order where it can."""
        self.connection.close()  # the end of its items: it leaves its context and ends
        if self.item is not None:
            self._process.terminate()  # in the middle of an item it leaves its context too
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def give_up(self) -> None:
        """End it though another thread waits for what it is doing."""
        self._process.terminate()
        self._process.join(timeout=10)  # before its connection closes under that thread
        self.stop()


def first_ready(busy: Sequence[GradingProcess[Item]]) -> list[GradingProcess[Item]]:
    """Wait for the first to have something to say, which one that is killed has."""
    ready: list[GradingProcess[Item]] = []
    while not ready:
        there = wait([process.connection for process in busy], _LOOK)
        ready = [process for process in busy if process.connection in there]
        for process in busy:
            if process not in ready:
                process.kill_beyond_bounds()
    return ready


def _start_server() -> None:
    """Start the process that all workers are forked from, deaf to Ctrl-C from its first moment on.

    By itself it is so only once it has imported what workers share, which takes seconds.
    """
    from multiprocessing import forkserver, resource_tracker  # Windows, where nobody grades, has no

    resource_tracker.ensure_running()  # which would unblock the signal again
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


_MANUAL = "This submission alone waits for manual grading."
_LATE = Broken("The grader itself took too long for this submission, and was stopped.")
_TOO_LARGE = Broken(
    f"Reading this took the grader too much memory, so it stopped. {_MANUAL}", False
)
_TOO_HARD = Broken(
    f"The grader itself computed for too long on this, so it stopped. {_MANUAL}", again=False
)


def _death(exitcode: int) -> Broken:
    if exitcode == -signal.SIGPROF:
        return _TOO_HARD
    how = f"killed by signal {-exitcode}" if exitcode < 0 else f"ended with status {exitcode}"
    return Broken(f"{TRIES} grading processes died at this submission; the last was {how}.")


# In the worker's process


def _work(
    connection: Connection, make_worker: MakeWorker[Any, Any], slot: int, cpu_seconds: float
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the controller's to act on
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, _leave)
    warnings.simplefilter("ignore")  # Python's, on a student's code, would be printed and quote it
    threading.Thread(target=_end_with_the_controller, daemon=True).start()
    try:
        with make_worker(slot) as work, _leaving_undisturbed():
            gc.freeze()  # what is imported stays; looking through it for garbage takes long
            while True:
                item = connection.recv()
                _bound(cpu_seconds)
                outcome = work(item)
                _bound(0)
                connection.send(outcome)
    except (EOFError, BrokenPipeError):
        return
    except Exception as error:
        with suppress(OSError):
            connection.send(Broken(f"{type(error).__name__}: {error}"))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is leaving already


def _bound(cpu_seconds: float) -> None:
    """Let the system kill this process after so much computing of its own; 0 takes that back."""
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


def _end_with_the_controller() -> None:
    """Wait for the controller's death, a kill -9 for one, and end this process in good order."""
    controller = multiprocessing.parent_process()
    if controller is not None:
        controller.join()
        os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _leaving_undisturbed() -> Iterator[None]:
    """Told to end twice, by its items' end and by a signal, a process leaves its context once."""
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _leave(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit()  # leaves every context on the way
