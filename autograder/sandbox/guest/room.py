"""Gets this process ready for a budget of memory: garbage gone, room made, idle memory shut."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["find_idle", "settle"]

_libc = ctypes.CDLL(None)
_SMALL = 512  # bytes of the largest objects that Python packs together
_EACH = 2**18  # one object in each such piece keeps Python's arenas of 1 MiB from being given back
_ROOM = 4 * 2**20
_IDLE = 16 * 2**20  # bytes of the least mapping that is shut while memory is measured
_LEFT_OPEN = 8 * 2**20  # of each: numpy's products with 12,000 columns need no more
_NO_ACCESS, _READ_AND_WRITE = 0, 3

_anchors: list[bytes] = []  # what keeps the room for small objects
_idle: list[tuple[int, int]] = []  # address and size of memory that libraries hold and don't use


def find_idle() -> None:
    """Find the idle memory that libraries hold now, for `settle` to shut."""
    _idle[:] = _idle_mappings()


def _idle_mappings() -> Iterator[tuple[int, int]]:
    """Where libraries mapped memory that nothing was ever written to, but for its beginning."""
    start = size = 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        word, *rest = line.split()
        if not word.endswith(":"):
            first, _, end = word.partition("-")
            private = rest[0] == "rw-p" and rest[3] == "0"
            start = int(first, 16)
            size = int(end, 16) - start if private else 0
        elif word == "Rss:" and rest[0] == "0" and size >= _IDLE:
            yield start + _LEFT_OPEN, size - _LEFT_OPEN


def settle(try_bytes: int, *, shut: bool) -> dict[str, Any]:
    """Get this process ready for a budget of memory; tell whether `try_bytes` are to be had.

    Garbage goes, and freed memory goes back. Python maps memory for small objects by the MiB, and
    lets go of a MiB as soon as it is empty: room is made for some here, so that none of it counts
    against a budget for data. Idle memory of libraries is `shut`, so that to open it costs budget.
    """
    gc.collect()
    objects = [bytes(_SMALL - sys.getsizeof(b"")) for _ in range(_ROOM // _SMALL)]
    _anchors[:] = objects[:: _EACH // _SMALL]
    del objects
    _libc.malloc_trim(0)
    for start, size in _idle:
        rights = _NO_ACCESS if shut else _READ_AND_WRITE
        _libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(size), rights)
    try:
        return {"had": len(bytearray(try_bytes)) == try_bytes}
    except MemoryError:
        return {"had": False}
