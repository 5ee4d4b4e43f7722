"""The library's exceptions as one tree, each with the data you need to act on it.

    PeakmemError
    ├── OutOfMemory    a run needed more memory than its budget   (also a MemoryError)
    ├── Infeasible     no plan stays within the budget            (also a ValueError)
    │   └── Stuck      a plan's next step can never start         (plan.player)
    ├── NotAllowed     code used what its exercise forbids        (probes.conversions)
    ├── NotDefined     an exercise's function is missing          (also a NameError)
    ├── PlainError     a value is not plain data                  (core.serialization, a ValueError)
    ├── RankError      one rank failed or died                    (also a RuntimeError)
    ├── RanksTimeout   ranks didn't return in time                (also a TimeoutError)
    ├── SelfCheckFailed  a self-check has failing cases           (labs.self_check,
    │                                                              an AssertionError)
    ├── Unreadable     a command line can't be parsed             (show.cli.program)
    ├── UnreadableSnapshot  a file isn't a snapshot of plain data
    │                                                             (measure.snapshot, a ValueError)
    └── Untraceable    a trace can't see an operator's memory     (measure.workspaces,
                                                                   a NotImplementedError)

An argument out of range, such as a batch of 0, raises Python's own ValueError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

__all__ = [
    "Infeasible",
    "NotDefined",
    "OutOfMemory",
    "PeakmemError",
    "RankError",
    "RanksTimeout",
    "closest",
    "did_you_mean",
    "named",
    "require_one_of",
    "require_whole",
]

Entry = TypeVar("Entry")


class PeakmemError(Exception):
    """Base class of the library's exceptions: one `except` catches them all."""


class OutOfMemory(PeakmemError, MemoryError):
    """A run needed more memory than its budget.

    `needed_bytes` were live when the run was stopped; it was allowed `budget_bytes`. Both are None
    if a device reported only that it was full.
    """

    def __init__(
        self,
        message: str,
        *,
        needed_bytes: int | None = None,
        budget_bytes: int | None = None,
    ) -> None:
        super().__init__(message)
        self.needed_bytes = needed_bytes
        self.budget_bytes = budget_bytes


class Infeasible(PeakmemError, ValueError):
    """No plan stays within the budget; `least_budget_bytes` is the smallest sufficient budget."""

    def __init__(self, message: str, *, least_budget_bytes: int | None = None) -> None:
        super().__init__(message)
        self.least_budget_bytes = least_budget_bytes


class NotDefined(PeakmemError, NameError):
    """The notebook doesn't define a function or class that an exercise asks for."""


class RankError(PeakmemError, RuntimeError):
    """Rank number `rank` raised an exception or died.

    `kind` names the exception's type and `function` the function that raised it. Both are empty if
    the process died without raising one.
    """

    def __init__(self, message: str, *, rank: int, kind: str = "", function: str = "") -> None:
        super().__init__(message)
        self.rank = rank
        self.kind = kind
        self.function = function


class RanksTimeout(PeakmemError, TimeoutError):
    """Some ranks didn't return in time; `where` maps each of them to the call it is waiting in."""

    def __init__(self, message: str, *, where: Mapping[int, str]) -> None:
        super().__init__(message)
        self.where = dict(where)


def require_whole(name: str, value: object) -> None:
    """Raise ValueError, naming the argument, unless `value` is a whole number of at least 1.

    >>> require_whole("batch", 8)
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"expected {name} to be a whole number of at least 1, but got {value!r}")


def require_one_of(name: str, value: object, known: Iterable[object]) -> None:
    """Raise ValueError, naming the argument and listing the choices, unless `value` is known.

    >>> require_one_of("zero", 3, (0, 1, 2, 3))
    """
    choices = list(known)
    if value not in choices:
        raise ValueError(
            f"{name}={value!r} is unknown{did_you_mean(value, choices)}; "
            f"use one of {', '.join(map(repr, choices))}"
        )


def named(kind: str, name: str, known: Mapping[str, Entry]) -> Entry:
    """Return the entry of this name. Raises ValueError, listing all names, for any other.

    >>> named("number", "two", {"one": 1, "two": 2})
    2
    """
    if name not in known:
        hint = did_you_mean(name, known)
        raise ValueError(f"unknown {kind} {name!r}{hint}; known are {', '.join(known)}")
    return known[name]


def did_you_mean(value: object, known: Iterable[object]) -> str:
    """Return a hint at the known name closest to an unknown one; empty if none is close.

    >>> did_you_mean("adamw8bit", ["sgd", "adam8bit"]), did_you_mean("gpt3", ["gpt2", "gpt3-175b"])
    (" (did you mean 'adam8bit'?)", " (did you mean 'gpt3-175b'?)")
    """
    close = closest(str(value), [name for name in known if isinstance(name, str)])
    return f" (did you mean {close!r}?)" if close else ""


def closest(word: str, names: Iterable[str]) -> str | None:
    """Return the shortest name that begins with a word, else contains it, else the most similar.

    >>> closest("gpt3", ["gpt2", "gpt3-175b"]), closest("grde", ["grade"]), closest("x", ["grade"])
    ('gpt3-175b', 'grade', None)
    """
    names = list(names)
    begun = [name for name in names if word and name.startswith(word)]
    holding = [name for name in names if len(word) > 2 and word in name]
    close = sorted(begun or holding, key=len) or get_close_matches(word, names, n=1)
    return close[0] if close else None
