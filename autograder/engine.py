"""Engine: maps a piece of work over many items in several processes, and survives their deaths.

A worker process is made by `make_worker(slot)`, once; it then takes one item after another. When a
worker dies, its item is tried again in a new one; an item that ends two workers is handed back as
failed, with the reason, and the others go on.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

__all__ = ["Failure", "Solo", "Work", "run_all"]

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
MakeWorker = Callable[[int], AbstractContextManager[Callable[[Item], Outcome]]]

_TRIES = 2


@dataclass(frozen=True)
class Failure:
    """An item that no worker could finish, and why."""

    reason: str


@dataclass(frozen=True)
class _Broken:
    """A worker's last word: the exception that ends it."""

    reason: str


@dataclass(frozen=True)
class Work(Generic[Item, Outcome]):
    """What is done with each item, and how long that may take.

    `make_worker(slot)` is called in the worker's process, with a slot number that no other worker
    has at that time; its context is left when the work is done, and when the controller dies.
    `preload` are modules that the processes share. A worker that computes on one item for over
    `cpu_seconds`, the time of processes that it started left out, or that has it for over
    `wall_seconds`, is ended.
    """

    make_worker: MakeWorker[Item, Outcome]
    preload: Sequence[str] = ()
    cpu_seconds: float = 120.0  # hours of work may hide in a few hostile bytes
    wall_seconds: float = 3600.0


@dataclass
class _Worker(Generic[Item]):
    process: Any
    connection: Connection
    slot: int
    item: Item | None = None
    tries: int = 0
    deadline: float = math.inf
    late: bool = False


def run_all(
    items: Sequence[Item], work: Work[Item, Outcome], workers: int
) -> Iterator[tuple[Item, Outcome | Failure]]:
    """Yield each item with its outcome, as they are finished. Closing this stops all workers."""
    waiting = deque((item, 1) for item in items)
    pool: list[_Worker[Item]] = []
    try:
        for slot in range(min(workers, len(items))):
            pool.append(_start(work, slot))
            _hand_out(pool[-1], waiting, work.wall_seconds)
        while busy := [worker for worker in pool if worker.item is not None]:
            for worker in _ready(busy):
                item = worker.item
                assert item is not None
                outcome = _outcome(worker)
                if not isinstance(outcome, _Broken):
                    yield item, outcome
                else:
                    if worker.tries < _TRIES:
                        waiting.append((item, worker.tries + 1))
                    else:
                        yield item, Failure(outcome.reason)
                    worker = pool[worker.slot] = _start(work, worker.slot)
                _hand_out(worker, waiting, work.wall_seconds)
    finally:
        for worker in pool:
            _stop(worker)


class Solo(Generic[Item, Outcome]):
    """One worker that is kept from item to item, for callers that have their own order of items."""

    def __init__(self, work: Work[Item, Outcome], slot: int) -> None:
        self._work = work
        self._worker: _Worker[Item] = _start(work, slot)
        self._lock = threading.Lock()
        self._closed = False

    def do(self, item: Item) -> Outcome | Failure:
        """Return what came of the item, after as many tries as `run_all` gives it."""
        for tries in range(1, _TRIES + 1):
            _hand_out(self._worker, deque([(item, tries)]), self._work.wall_seconds)
            while not _ready([self._worker]):
                pass
            outcome = _outcome(self._worker)
            if not isinstance(outcome, _Broken):
                self._worker.item = None
                result: Outcome = outcome
                return result
            with self._lock:
                if self._closed:
                    return Failure("It was given up, as its run had ended.")
                self._worker = _start(self._work, self._worker.slot)
        return Failure(outcome.reason)

    def close(self) -> None:
        """End the worker; what it is in the middle of, in another thread's `do`, is given up."""
        with self._lock:
            self._closed = True
            self._worker.process.terminate()
            self._worker.process.join(timeout=10)  # before its connection closes under that thread
            _stop(self._worker)


def _start(work: Work[Item, Any], slot: int) -> _Worker[Item]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(work.preload))
    _start_server()
    ours, theirs = context.Pipe()
    arguments = (theirs, work.make_worker, slot, work.cpu_seconds)
    process = context.Process(target=_work, args=arguments, daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours, slot)


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


def _ready(busy: Sequence[_Worker[Item]]) -> list[_Worker[Item]]:
    """Wait for the first to have something to say, which one that is killed for its time has."""
    first = min(worker.deadline for worker in busy)
    left = None if first == math.inf else max(0.0, first - time.monotonic())
    ready = wait([worker.connection for worker in busy], left)
    for worker in busy:
        if worker.connection not in ready and time.monotonic() >= worker.deadline:
            worker.late = True
            worker.process.kill()  # one that is stopped, not busy, would never see a kinder signal
            worker.process.join()
    return [worker for worker in busy if worker.connection in ready]


def _outcome(worker: _Worker[Any]) -> Any:
    """What a worker that is ready has to say; `_Broken` where it is no more after that."""
    try:
        outcome = worker.connection.recv()
    except (EOFError, OSError):
        _stop(worker)
        return _Broken(_LATE if worker.late else _death(worker.process.exitcode))
    if isinstance(outcome, _Broken):
        _stop(worker)
    return outcome


_LATE = "The grader itself took too long for this submission, and was stopped."


def _death(exitcode: int) -> str:
    if exitcode == -signal.SIGPROF:
        return "The grader itself computed for too long on this submission, and was stopped."
    how = f"killed by signal {-exitcode}" if exitcode < 0 else f"ended with status {exitcode}"
    return f"{_TRIES} grading processes died at this submission; the last was {how}."


def _hand_out(worker: _Worker[Item], waiting: deque[tuple[Item, int]], wall_seconds: float) -> None:
    worker.item = None
    if waiting:
        worker.item, worker.tries = waiting.popleft()
        worker.deadline = time.monotonic() + wall_seconds
        with suppress(OSError):  # a worker that is dead already shows when it is waited for
            worker.connection.send(worker.item)


def _stop(worker: _Worker[Any]) -> None:
    worker.connection.close()  # the end of its items: it leaves its context and ends
    if worker.item is not None:
        worker.process.terminate()  # in the middle of an item it leaves its context too
    worker.process.join(timeout=10)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()


# In the worker's process


def _work(
    connection: Connection, make_worker: MakeWorker[Any, Any], slot: int, cpu_seconds: float
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the controller's to act on
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_end_with_the_controller, daemon=True).start()
    try:
        with make_worker(slot) as work:
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
            connection.send(_Broken(f"{type(error).__name__}: {error}"))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is leaving already


def _bound(cpu_seconds: float) -> None:
    """Let the system kill this process after so much computing of its own; 0 takes that back.

    Killed, and not interrupted: what takes for ever may be code in C that no exception reaches.
    """
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


def _end_with_the_controller() -> None:
    """Wait for the controller's death, a kill -9 for one, and end this process in good order."""
    controller = multiprocessing.parent_process()
    if controller is not None:
        controller.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _leave(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit()  # leaves every context on the way
