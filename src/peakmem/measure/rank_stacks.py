"""Where a rank is: the call that it waits in, read from the stack that it wrote down."""

from __future__ import annotations

import linecache
import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import torch

__all__ = ["Place", "place_in", "stack_of"]

_FRAME = re.compile(r'\s*File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)')
_THREAD = re.compile(r"(?:Current t|T)hread 0x(?P<ident>[0-9a-f]+)")
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


def stack_of(dump: str, thread: int) -> list[Place]:
    r"""Return one thread's calls, the innermost first, from what faulthandler wrote.

    Empty if the thread is not there.

    >>> stack_of('Thread 0x0f (most recent call first):\n  File "a.py", line 3 in step\n', 15)
    [Place(file='a.py', line=3, function='step')]
    """
    found: list[Place] = []
    wanted = False
    for text in dump.splitlines():
        if heading := _THREAD.match(text):
            wanted = int(heading["ident"], 16) == thread
        elif wanted and (frame := _FRAME.match(text)):
            found.append(Place(frame["file"], int(frame["line"]), frame["function"]))
    return found


def place_in(stack: list[Place]) -> str:
    """Say in which call a rank waits: a call of torch or Python, and the line that makes it.

    The line is the innermost one that is neither torch's nor Python's own.

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
