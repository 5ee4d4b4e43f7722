"""Where a rank is: the call that it waits in, read from its stack."""

from __future__ import annotations

import linecache
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

__all__ = ["Place", "place_in"]

_LIBRARIES = (str(Path(torch.__file__).parent), sysconfig.get_path("stdlib"))
_WRAPPERS = "c10d_logger.py"  # through which torch calls all its collectives


@dataclass(frozen=True)
class Place:
    """One call in a stack: a file, a line of it, and the function that the line is in."""

    file: str
    line: int
    function: str

    @property
    def source(self) -> str:
        """The line itself; empty if its file cannot be read here."""
        return linecache.getline(self.file, self.line).strip()


def place_in(stack: Sequence[Place]) -> str:
    """Say in which call a rank waits: a call of torch or Python, and the line that makes it.

    `stack` has the innermost call first. The line is the innermost one that is neither torch's nor
    Python's own.

    >>> place_in([Place("train.py", 5, "step")])
    'line 5 of step'
    """
    own = next((n for n, place in enumerate(stack) if not _is_library(place)), None)
    if own is None:
        return "a place that it did not tell"
    line = stack[own]
    said = f"line {line.line} of {line.function}" + (f": {line.source}" if line.source else "")
    # A call into C++ leaves no frame of its own; then the line has to do.
    called = next((p for p in reversed(stack[:own]) if not p.file.endswith(_WRAPPERS)), None)
    return said if called is None else f"{called.function}, {said}"


def _is_library(place: Place) -> bool:
    return place.file.startswith(_LIBRARIES)
