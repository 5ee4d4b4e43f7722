"""Starts and watches a grading process, and runs its work loop.

A submission's bytes enter the grader only here: all code that reads them, or anything derived from
them, runs in such a process, within bounds on CPU time and memory, and is killed if it exceeds
them. It is killed rather than interrupted because endless work may be C code that no exception
reaches, and because a partial reading must not count as a reading.
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

TRIES = 2  # grading processes that one item may bring down
_LOOK = 0.1  # seconds between checks of the memory


@dataclass(frozen=True)
class Work(Generic[Item, Outcome]):
    """The work on each item, and its bounds.

    A process is ended if it uses more than `cpu_seconds` on one item, holds more than
    `memory_bytes` of its own, or keeps an item for over `wall_seconds`. Its child processes don't
    count.
    """

    #: Called as `make_worker(slot)` in the worker's process, with a slot number that no other
    #: worker has at that time. Its context is left when the work is done or the controller dies.
    make_worker: MakeWorker[Item, Outcome]
    #: Modules that the processes share.
    preload: Sequence[str] = ()
    #: CPU time for one item, because a few hostile bytes may cause hours of work.
    cpu_seconds: float = 60.0
    #: Anonymous memory that the process may hold.
    memory_bytes: int = 2**30
    #: Wall time for one item.
    wall_seconds: float = 3600.0


@dataclass(frozen=True)
class Broken:
    """Why a grading process ended early."""

    #: The reason, as a sentence.
    reason: str
    #: Whether a second try in another process may succeed.
    again: bool = True


class GradingProcess(Generic[Item]):
    """A process that handles one item after another, seen from its controller.

    `item` is the current item, or None while it waits; `tries` counts the processes that have been
    given that item, including this one.
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
        """Give it this item, and start the item's deadline."""
        self.item, self.tries = item, tries
        self.deadline = time.monotonic() + self._wall_seconds
        with suppress(OSError):  # a dead process is noticed when waiting for it
            self.connection.send(item)

    def kill_beyond_bounds(self) -> None:
        """Kill it if it is past its deadline or its memory bound."""
        if time.monotonic() >= self.deadline:
            self._kill_for(_LATE)
        elif self._own_bytes() > self._memory_bytes:
            self._kill_for(_TOO_LARGE)

    def _own_bytes(self) -> int:
        try:
            return memory.status_bytes(self._process.pid, "RssAnon")
        except OSError:  # the process has just ended
            return 0

    def _kill_for(self, reason: Broken) -> None:
        self._killed_for = reason
        self._process.kill()  # a stopped process would never receive a gentler signal
        self._process.join()

    def outcome(self) -> Any:
        """Return the item's outcome once it is ready; `Broken` if the process has ended."""
        try:
            outcome = self.connection.recv()
        except (EOFError, OSError):
            self.stop()
            return self._killed_for or _death(self._process.exitcode)
        if isinstance(outcome, Broken):
            self.stop()
        return outcome

    def stop(self) -> None:
        """End the process, cleanly if possible."""
        self.connection.close()  # no more items, so it leaves its context and exits
        if self.item is not None:
            self._process.terminate()  # interrupts the item; it still leaves its context
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def give_up(self) -> None:
        """End the process while another thread waits for its outcome."""
        self._process.terminate()
        self._process.join(timeout=10)  # before its connection closes while that thread uses it
        self.stop()


def first_ready(busy: Sequence[GradingProcess[Item]]) -> list[GradingProcess[Item]]:
    """Wait until at least one process is ready; a killed one counts as ready."""
    ready: list[GradingProcess[Item]] = []
    while not ready:
        there = wait([process.connection for process in busy], _LOOK)
        ready = [process for process in busy if process.connection in there]
        for process in busy:
            if process not in ready:
                process.kill_beyond_bounds()
    return ready


def _start_server() -> None:
    """Start the process from which all workers are forked, with Ctrl-C blocked from the start.

    By itself it blocks Ctrl-C only after importing the shared modules, which takes seconds.
    """
    from multiprocessing import forkserver, resource_tracker  # Windows has no forkserver

    resource_tracker.ensure_running()  # started later, it would unblock the signal
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


_MANUAL = "Only this submission is waiting for manual grading."
_LATE = Broken("The grader took too long on this submission and was stopped.")
_TOO_LARGE = Broken(
    "Reading this submission took too much of the grader's memory, so the grader stopped. "
    f"{_MANUAL}",
    False,
)
_TOO_HARD = Broken(
    f"Reading this submission took the grader too much computing time, so it stopped. {_MANUAL}",
    again=False,
)


def _death(exitcode: int) -> Broken:
    if exitcode == -signal.SIGPROF:
        return _TOO_HARD
    how = f"killed by signal {-exitcode}" if exitcode < 0 else f"ended with status {exitcode}"
    return Broken(f"{TRIES} grading processes died on this submission; the last was {how}.")


# Runs in the worker's process


def _work(
    connection: Connection, make_worker: MakeWorker[Any, Any], slot: int, cpu_seconds: float
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the controller acts on Ctrl-C
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, _leave)
    warnings.simplefilter("ignore")  # Python's warnings would print a student's code
    threading.Thread(target=_end_with_the_controller, daemon=True).start()
    try:
        with make_worker(slot) as work, _leaving_undisturbed():
            gc.freeze()  # imported modules stay; scanning them for garbage is slow
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
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is already leaving


def _bound(cpu_seconds: float) -> None:
    """Make the system kill this process after this much CPU time; 0 cancels."""
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


def _end_with_the_controller() -> None:
    """Wait for the controller's death (for example by kill -9), then end this process cleanly."""
    controller = multiprocessing.parent_process()
    if controller is not None:
        controller.join()
        os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _leaving_undisturbed() -> Iterator[None]:
    """Leave the process's context only once, even if the end of items and a signal both ask."""
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _leave(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit()  # leaves every context on the way
