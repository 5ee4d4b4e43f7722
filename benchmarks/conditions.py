"""Conditions under which to measure on a machine, such as memory pressure."""

from __future__ import annotations

import contextlib
import mmap
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from benchmarks.figures import NotRun

__all__ = ["CONDITIONS", "signs"]

_DROP_CACHES = Path("/proc/sys/vm/drop_caches")
_PERIOD = 1.0  # seconds between two drops of the page cache
_LOOK = 0.01  # seconds between two checks of the memory left
_LEFT_BYTES = 3 * 2**28  # that pressure leaves to others: less than the page cache they use
_CHUNK_BYTES = 64 * 2**20
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Signs:
    """Kernel counters since boot, one of which shows each condition."""

    dropped: int  # how often the page cache was dropped
    reclaimed_pages: int
    major_faults: int
    busy_seconds: float  # summed over all processors

    def since(self, before: Signs) -> Signs:
        return Signs(
            self.dropped - before.dropped,
            self.reclaimed_pages - before.reclaimed_pages,
            self.major_faults - before.major_faults,
            self.busy_seconds - before.busy_seconds,
        )


def signs() -> Signs:
    """Return the kernel's counters."""
    counts = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    user, nice, system = map(int, Path("/proc/stat").read_text().split(maxsplit=4)[1:4])
    return Signs(
        dropped=int(counts.get("drop_pagecache", 0)),
        reclaimed_pages=int(counts["pgsteal_kswapd"]) + int(counts["pgsteal_direct"]),
        major_faults=int(counts["pgmajfault"]),
        busy_seconds=(user + nice + system) / os.sysconf("SC_CLK_TCK"),
    )


@contextlib.contextmanager
def _idle() -> Iterator[None]:
    yield


@contextlib.contextmanager
def _busy() -> Iterator[None]:
    with contextlib.ExitStack() as children:
        for _ in range(os.cpu_count() or 1):
            children.enter_context(_child(_spin))
        yield


@contextlib.contextmanager
def _cold() -> Iterator[None]:
    if not os.access(_DROP_CACHES, os.W_OK):
        raise NotRun("only root can drop the page cache, and not in every container")
    ended = threading.Event()

    def drop() -> None:
        _DROP_CACHES.write_text("1")
        while not ended.wait(_PERIOD):
            _DROP_CACHES.write_text("1")

    thread = threading.Thread(target=drop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def _pressure() -> Iterator[None]:
    with _child(_press) as child:
        yield
        if not child.is_alive():
            raise RuntimeError("the process that held the memory was ended before the measuring")


# The conditions' names, and the functions that create them. NotRun says why one can't be created.
CONDITIONS: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "idle": _idle,
    "busy": _busy,
    "cold": _cold,
    "pressure": _pressure,
}


@contextlib.contextmanager
def _child(work: Callable[[int], None]) -> Iterator[BaseProcess]:
    """Run `work` in a separate process until the block or this process ends."""
    child = multiprocessing.get_context("spawn").Process(target=work, args=(os.getpid(),))
    child.start()
    try:
        yield child
    finally:
        child.kill()
        child.join()


def _spin(parent: int) -> None:
    while os.getppid() == parent:
        pass


def _press(parent: int) -> None:
    """Hold all memory except a reserve, and release memory whenever others take from the reserve.

    If memory runs out anyway, the kernel ends this process first.
    """
    Path("/proc/self/oom_score_adj").write_text("1000")
    held: list[mmap.mmap] = []
    while os.getppid() == parent:
        if not _adjust(held, _available_bytes()):
            time.sleep(_LOOK)


def _adjust(held: list[mmap.mmap], left_bytes: int) -> bool:
    """Take or release one piece of memory if necessary; return whether it was."""
    if left_bytes < _LEFT_BYTES and held:
        held.pop().close()
    elif left_bytes > _LEFT_BYTES + _CHUNK_BYTES:
        held.append(mmap.mmap(-1, _CHUNK_BYTES, flags=mmap.MAP_PRIVATE))
        _touch(held[-1])
    else:
        return False
    return True


def _touch(block: mmap.mmap) -> None:
    for start in range(0, len(block), _PAGE):
        block[start] = 1


def _available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
