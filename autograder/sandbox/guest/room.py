"""Prepares this process for a memory budget: frees garbage, makes room, closes idle memory.

It also extends the main thread's stack, which can't grow during a measured call.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograder.sandbox.guest.seccomp import stack_begins

__all__ = ["find_idle", "settle"]

_libc = ctypes.CDLL(None)
_SMALL = 512  # bytes; Python packs objects up to this size together
_EACH = 2**18  # one object per piece of this size keeps Python's 1 MiB arenas from being freed
_ROOM = 4 * 2**20
_IDLE = 16 * 2**20  # bytes; larger idle mappings are closed while memory is measured
_LEFT_OPEN = 8 * 2**20  # bytes of each that stay open, enough for numpy products of 12,000 columns
_STACK = 2 * 2**20  # bytes of stack that are mapped before a measured call
_NO_ACCESS, _READ_AND_WRITE = 0, 3

_anchors: list[bytes] = []  # objects that keep the room for small objects from being freed
_idle: list[tuple[int, int]] = []  # address and size of memory that libraries hold but don't use
_stack_begins: list[int] = []  # the address from which the main thread's stack grows down


def find_idle() -> None:
    """Record where the stack begins, and the idle memory of libraries that `settle` can close."""
    _idle[:] = _idle_mappings()
    begins = stack_begins()
    _stack_begins[:] = [] if begins is None else [begins]


def _idle_mappings() -> Iterator[tuple[int, int]]:
    """The large mappings that libraries have never written to, without their first bytes."""
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
    """Prepare this process for a memory budget; tell whether `try_bytes` can be allocated.

    Collects garbage, and returns freed memory to the system. Python maps memory for small objects
    in blocks of 1 MiB and frees a block once it is empty, so this makes some room that doesn't
    count against a data budget. With `shut`, libraries' idle memory becomes inaccessible, so that
    opening it again costs budget.
    """
    gc.collect()
    objects = [bytes(_SMALL - sys.getsizeof(b"")) for _ in range(_ROOM // _SMALL)]
    _anchors[:] = objects[:: _EACH // _SMALL]
    del objects
    _libc.malloc_trim(0)
    for begins in _stack_begins:
        ctypes.string_at(begins - _STACK, 1)  # reading makes the kernel map the stack this far
    for start, size in _idle:
        rights = _NO_ACCESS if shut else _READ_AND_WRITE
        _libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(size), rights)
    try:
        return {"had": len(bytearray(try_bytes)) == try_bytes}
    except MemoryError:
        return {"had": False}
