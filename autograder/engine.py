"""Engine: maps a piece of work over many items in several processes, and survives their deaths.

A worker process is made by `make_worker(slot)`, once; it then takes one item after another. When a
worker dies, its item is tried again in a new one; an item that kills two workers is handed back as
failed, and the others go on.
"""

from __future__ import annotations

import multiprocessing
import signal
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


@dataclass(frozen=True)
class Failure:
    """An item that no worker could finish, and why."""

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
) -> Iterator[tuple[Item, Outcome | Failure]]:
    """Yield each item with its outcome, as they are finished.

    `make_worker(slot)` is called in the worker's process, with a slot number that no other worker
    has at that time; its context is left when the work is done. `preload` are modules that the
    processes share. Closing the iterator stops all workers.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    waiting = deque((item, 1) for item in items)
    pool: list[_Worker[Item]] = []
    try:
        for slot in range(min(workers, len(items))):
            pool.append(_start(context, make_worker, slot))
            _hand_out(pool[-1], waiting)
        while any(worker.item is not None for worker in pool):
            ready = wait([w.connection for w in pool if w.item is not None])
            for worker in [w for w in pool if w.connection in ready]:
                item, tries = worker.item, worker.tries
                assert item is not None
                try:
                    yield item, worker.connection.recv()
                except (EOFError, OSError):
                    _stop(worker)
                    if tries < _TRIES:
                        waiting.append((item, tries + 1))
                    else:
                        yield item, Failure(f"{tries} grading processes died at this submission")
                    worker = _replace(context, make_worker, pool, worker)
                _hand_out(worker, waiting)
    finally:
        for worker in pool:
            _stop(worker)


def _start(context: Any, make_worker: MakeWorker[Item, Outcome], slot: int) -> _Worker[Item]:
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, make_worker, slot), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours, slot)


def _replace(
    context: Any,
    make_worker: MakeWorker[Item, Outcome],
    pool: list[_Worker[Item]],
    dead: _Worker[Item],
) -> _Worker[Item]:
    fresh = _start(context, make_worker, dead.slot)
    pool[pool.index(dead)] = fresh
    return fresh


def _hand_out(worker: _Worker[Item], waiting: deque[tuple[Item, int]]) -> None:
    worker.item = None
    if waiting:
        worker.item, worker.tries = waiting.popleft()
        with suppress(OSError):  # a worker that is dead already shows when it is waited for
            worker.connection.send(worker.item)


def _stop(worker: _Worker[Any]) -> None:
    worker.connection.close()  # the end of its items: it leaves its context and ends
    worker.process.join(timeout=10)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()


def _work(connection: Connection, make_worker: MakeWorker[Item, Outcome], slot: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the controller's to act on
    with make_worker(slot) as work:
        while True:
            try:
                item = connection.recv()
            except EOFError:
                return
            connection.send(work(item))
