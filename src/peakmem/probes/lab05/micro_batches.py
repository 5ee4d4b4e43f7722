"""Probes of lab 5's micro-batch sizes: the largest that fits, and the line through their peaks."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from peakmem.core.errors import Infeasible, OutOfMemory
from peakmem.probes import Namespace, call_each

__all__ = ["largest_micro_batch", "memory_line"]


def largest_micro_batch(student: Namespace, upper: int, ask: Callable[[Any], Any]) -> Any:
    """Let the student search for the largest micro-batch; the grader decides what fits.

    Returns ("value", answer); ("endless", runs) for a search that goes on after `_most_runs`; or
    ("raised", name of the error) if a run raised OutOfMemory or one of `_BUGS` and
    `largest_micro_batch` let it pass. Only the type of an error matters, not its message.
    """
    raised: list[Exception] = []
    runs = itertools.count()

    def run(m: int) -> object:
        if next(runs) >= _most_runs(upper):
            raise _Endless
        reply = ask(operator.index(m))  # a TypeError for 2.5: half a sample cannot be run
        if reply == "out of memory":
            raised.append(OutOfMemory(_WORDS[m % len(_WORDS)]))
            raise raised[-1]
        if reply in _BUGS:
            raised.append(_BUGS[reply](f"out of memory? No, a bug: {m} samples do not fit a shape"))
            raise raised[-1]
        return _RESULTS[m % len(_RESULTS)]

    try:
        return ("value", student.largest_micro_batch(run, upper))
    except _Endless:
        return ("endless", _most_runs(upper))
    except _PASSED_ON as error:
        if not any(error is bug for bug in raised):
            raise
        return ("raised", type(error).__name__)


def _most_runs(upper: int) -> int:
    """Return after how many runs a search is stopped; one size after another takes `upper`."""
    return upper + 64


class _Endless(BaseException):
    """Stops a search; a search that catches every Exception doesn't catch this."""


_RESULTS = (None, False, True)  # of a run that fits: they say nothing
_WORDS = ("", "the allocator has nothing left", "aten::bmm asked for 2,097,152 bytes")
# The error to raise, by the grader's reply. torch raises RuntimeError for most bugs. OutOfMemory
# has two bases, and other errors derived from these don't mean that a run needs too much memory.
_BUGS: dict[str, type[Exception]] = {
    "broken": ValueError,
    "broken otherwise": RuntimeError,
    "another memory": MemoryError,
    "another of peakmem": Infeasible,
}
_PASSED_ON: tuple[type[Exception], ...] = (OutOfMemory, *_BUGS.values())


def memory_line(student: Namespace, calls: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Call `memory_line(batch_sizes, peaks)` for each of `calls`."""
    return call_each(student.memory_line, calls)
