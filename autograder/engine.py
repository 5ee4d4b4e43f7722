"""Engine: maps a piece of work over many items in several processes, and survives their deaths.

A worker process is made by `make_worker(slot)`, once; it then takes one item after another. When a
worker dies, its item is tried again in a new one; an item that ends two workers is handed back as
failed, with the reason, and the others go on.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

__all__ = ["Failure", "run_all"]

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
MakeWorker = Callable[[int], AbstractContextManager[Callable[[Item], Outcome]]]

_TRIES = 2
_CPU_SECONDS = 120.0  # of a worker's own, an item: hours of work may hide in a few hostile bytes


@dataclass(frozen=True)
class Failure:
    """An item that no worker could finish, and why."""

    reason: str


@dataclass(frozen=True)
class _Broken:
    """A worker's last word: the exception that ends it."""

    reason: str


@dataclass
class _Worker(Generic[Item]):
    process: Any
    connection: Connection
    slot: int
    item: Item | None = None
    tries: int = 0


def run_all(
    items: Sequence[Item],
    make_worker: MakeWorker[Item, Outcome],
    workers: int,
    preload: Sequence[str] = (),
    cpu_seconds: float = _CPU_SECONDS,
) -> Iterator[tuple[Item, Outcome | Failure]]:
    """Yield each item with its outcome, as they are finished.

    `make_worker(slot)` is called in the worker's process, with a slot number that no other worker
    has at that time; its context is left when the work is done, and when this process dies.
    `preload` are modules that the processes share. A worker that computes on one item for over
    `cpu_seconds`, the time of processes that it started left out, is ended. Closing the iterator
    stops all workers.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    waiting = deque((item, 1) for item in items)
    pool: list[_Worker[Item]] = []

    def start(slot: int) -> _Worker[Item]:
        ours, theirs = context.Pipe()
        arguments = (theirs, make_worker, slot, cpu_seconds)
        process = context.Process(target=_work, args=arguments, daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours, slot)

    try:
        for slot in range(min(workers, len(items))):
            pool.append(start(slot))
            _hand_out(pool[-1], waiting)
        while busy := [worker for worker in pool if worker.item is not None]:
            ready = wait([worker.connection for worker in busy])
            for worker in [w for w in busy if w.connection in ready]:
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
                    worker = pool[worker.slot] = start(worker.slot)
                _hand_out(worker, waiting)
    finally:
        for worker in pool:
            _stop(worker)


def _outcome(worker: _Worker[Any]) -> Any:
    """What a worker that is ready has to say; `_Broken` where it is no more after that."""
    try:
        outcome = worker.connection.recv()
    except (EOFError, OSError):
        _stop(worker)
        return _Broken(_death(worker.process.exitcode))
    if isinstance(outcome, _Broken):
        _stop(worker)
    return outcome


def _death(exitcode: int) -> str:
    if exitcode == -signal.SIGPROF:
        return "The grader itself computed for too long on this submission, and was stopped."
    how = f"killed by signal {-exitcode}" if exitcode < 0 else f"ended with status {exitcode}"
    return f"{_TRIES} grading processes died at this submission; the last was {how}."


def _hand_out(worker: _Worker[Item], waiting: deque[tuple[Item, int]]) -> None:
    worker.item = None
    if waiting:
        worker.item, worker.tries = waiting.popleft()
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
    sys.exit()  # leaves every context on the way
