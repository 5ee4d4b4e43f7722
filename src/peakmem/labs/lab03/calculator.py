"""Lets a calculator run in a lab that hides the modules it is made of."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from peakmem.labs.session import Refusal

__all__ = [
    "with_hidden_modules",
]


@contextmanager
def with_hidden_modules() -> Iterator[None]:
    """Let a calculator import modules that `peakmem.lab` hides; afterwards they are hidden again."""
    refusals = [finder for finder in sys.meta_path if isinstance(finder, Refusal)]
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder not in refusals]
    try:
        yield
    finally:
        sys.meta_path[:0] = refusals
        for name in [name for refusal in refusals for name in refusal.modules]:
            package, _, module = name.rpartition(".")
            if sys.modules.pop(name, None) is not None:
                delattr(sys.modules[package], module)
