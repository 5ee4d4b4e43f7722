"""Maps work over many items in several processes, and survives their deaths.

`make_worker(slot)` makes a worker once, which then handles one item after another. When a worker's
process dies, its item is tried again in a new one. An item that brings down two workers is returned
as a Failure with the reason, and the other items continue.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from autograder.base.grading_process import TRIES, Broken, GradingProcess, Work, first_ready

__all__ = ["Failure", "Solo", "Work", "alone", "run_all"]

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Failure:
    """An item that no worker could finish."""

    #: Why, as a sentence.
    reason: str


def run_all(
    items: Sequence[Item], work: Work[Item, Outcome], workers: int
) -> Iterator[tuple[Item, Outcome | Failure]]:
    """Yield each item with its outcome once it is finished. Closing this stops all workers."""
    waiting = deque((item, 1) for item in items)
    pool: list[GradingProcess[Item]] = []
    try:
        for slot in range(min(workers, len(items))):
            pool.append(GradingProcess(work, slot))
            _hand_out(pool[-1], waiting)
        while busy := [process for process in pool if process.item is not None]:
            for process in first_ready(busy):
                item = process.item
                assert item is not None
                outcome = process.outcome()
                if not isinstance(outcome, Broken):
                    yield item, outcome
                else:
                    if outcome.again and process.tries < TRIES:
                        waiting.append((item, process.tries + 1))
                    else:
                        yield item, Failure(outcome.reason)
                    process = pool[process.slot] = GradingProcess(work, process.slot)
                _hand_out(process, waiting)
    finally:
        for process in pool:
            process.stop()


def _hand_out(process: GradingProcess[Item], waiting: deque[tuple[Item, int]]) -> None:
    process.item = None
    if waiting:
        process.hand(*waiting.popleft())


class Solo(Generic[Item, Outcome]):
    """One worker kept from item to item, for callers that choose the order of items themselves."""

    def __init__(self, work: Work[Item, Outcome], slot: int) -> None:
        self._work = work
        self._process: GradingProcess[Item] = GradingProcess(work, slot)
        self._lock = threading.Lock()
        self._closed = False

    def do(self, item: Item) -> Outcome | Failure:
        """Return the item's outcome, after at most `TRIES` tries."""
        for tries in range(1, TRIES + 1):
            self._process.hand(item, tries)
            first_ready([self._process])
            outcome = self._process.outcome()
            if not isinstance(outcome, Broken):
                self._process.item = None
                result: Outcome = outcome
                return result
            with self._lock:
                if self._closed:
                    return Failure("It was given up because its run had ended.")
                self._process = GradingProcess(self._work, self._process.slot)
            if not outcome.again:
                break
        return Failure(outcome.reason)

    def close(self) -> None:
        """End the worker, and give up an item that another thread's `do` waits for."""
        with self._lock:
            self._closed = True
            self._process.give_up()


def alone(function: Callable[[Item], Outcome], item: Item) -> Outcome | Failure:
    """Return `function(item)`, computed in a bounded process of its own."""
    with closing(Solo(Work(partial(_only, function)), slot=0)) as solo:
        return solo.do(item)


@contextmanager
def _only(function: Callable[[Item], Outcome], _slot: int) -> Iterator[Callable[[Item], Outcome]]:
    yield function
