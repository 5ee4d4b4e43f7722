"""Puts off Python's garbage collection while many objects are made, none of them garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_collection"]


@contextmanager
def no_collection() -> Iterator[None]:
    """Put off Python's garbage collection until the block ends.

    The collector would look at all new objects several times: the tens of thousands of a ledger, or
    those of torch's modules.

    >>> with no_collection():
    ...     gc.isenabled()
    False
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
