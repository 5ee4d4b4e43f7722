"""The call that a rank waits in, read from its stack."""

from __future__ import annotations

import linecache
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

__all__ = ["Place", "is_library", "place_in"]

_LIBRARIES = (str(Path(torch.__file__).parent), sysconfig.get_path("stdlib"))
_WRAPPERS = "c10d_logger.py"  # wraps all of torch's collectives


@dataclass(frozen=True)
class Place:
    """One frame of a stack."""

    #: The source file's path.
    file: str
    #: The line's number, from 1.
    line: int
    #: The function's name.
    function: str

    @property
    def source(self) -> str:
        """The line's text; empty if its file can't be read here."""
        return linecache.getline(self.file, self.line).strip()


def place_in(stack: Sequence[Place]) -> str:
    """Return the call that a rank waits in, as text: the function, and the line that calls it.

    `stack` has the innermost call first. The line is the innermost one outside torch and Python's
    standard library.

    >>> place_in([Place("train.py", 5, "step")])
    'line 5 of step'
    """
    own = next((n for n, place in enumerate(stack) if not is_library(place.file)), None)
    if own is None:
        return "a place it didn't report"
    line = stack[own]
    said = f"line {line.line} of {line.function}" + (f": {line.source}" if line.source else "")
    # A call into C++ has no frame of its own; then the line alone has to do.
    called = next((p for p in reversed(stack[:own]) if not p.file.endswith(_WRAPPERS)), None)
    return said if called is None else f"{called.function}, {said}"


def is_library(file: str) -> bool:
    """Return whether a source file belongs to torch or to Python's standard library."""
    return file.startswith(_LIBRARIES)
