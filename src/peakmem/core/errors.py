"""The errors of this library, each with what you need to act on it.

    PeakmemError
    ├── OutOfMemory    a run needed more memory than its budget   (also a MemoryError)
    ├── Infeasible     no plan keeps within the budget            (also a ValueError)
    │   └── Stuck      a plan's next step can never start         (plan.player)
    ├── NotDefined     an exercise's function is missing          (also a NameError)
    ├── PlainError     a value is not plain data                  (core.serialization, a ValueError)
    ├── RankError      one rank of several failed or died         (also a RuntimeError)
    ├── RanksTimeout   ranks still run, or wait for each other    (also a TimeoutError)
    ├── SelfCheckFailed  a self-check's cases don't all pass      (labs.self_check,
    │                                                              an AssertionError)
    ├── Unreadable     a command line can't be read               (show.cli.program)
    ├── UnreadableSnapshot  a file is no snapshot, or more than plain data
    │                                                             (measure.snapshot, a ValueError)
    └── Untraceable    fake tensors don't show an operator        (measure.workspaces,
                                                                   a NotImplementedError)

A value that makes no sense, such as a batch of 0, is a plain ValueError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

__all__ = [
    "Infeasible",
    "NotDefined",
    "OutOfMemory",
    "PeakmemError",
    "RankError",
    "RanksTimeout",
    "did_you_mean",
    "require_whole",
]


class PeakmemError(Exception):
    """What all errors of this library's own are, so that one `except` can catch them."""


class OutOfMemory(PeakmemError, MemoryError):
    """A run needed more memory than its budget.

    `needed_bytes` is what was live when the run was stopped, `budget_bytes` what it may have.
    Both are None if a device reported only that it was full.
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
    """No plan keeps within the budget; `least_budget_bytes` is the smallest that would do."""

    def __init__(self, message: str, *, least_budget_bytes: int | None = None) -> None:
        super().__init__(message)
        self.least_budget_bytes = least_budget_bytes


class NotDefined(PeakmemError, NameError):
    """A function or class that an exercise asks for is not in the notebook."""


class RankError(PeakmemError, RuntimeError):
    """A rank raised an error or died; `rank` is its number.

    `kind` is the name of the error's type, and `function` that of the function that raised it; both
    are empty if the process ended without one.
    """

    def __init__(self, message: str, *, rank: int, kind: str = "", function: str = "") -> None:
        super().__init__(message)
        self.rank = rank
        self.kind = kind
        self.function = function


class RanksTimeout(PeakmemError, TimeoutError):
    """Some ranks did not return in time; `where` says for each of those what it waits in."""

    def __init__(self, message: str, *, where: Mapping[int, str]) -> None:
        super().__init__(message)
        self.where = dict(where)


def require_whole(name: str, value: object) -> None:
    """Raise ValueError, with the name, for anything but a whole number of at least 1.

    >>> require_whole("batch", 8)
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"expected {name} to be a whole number of at least 1, but got {value!r}")


def did_you_mean(value: object, known: Iterable[object]) -> str:
    """Return a hint at the known name that an unknown one is part of or near to; empty if none is.

    >>> did_you_mean("adamw8bit", ["sgd", "adam8bit"]), did_you_mean("gpt3", ["gpt2", "gpt3-175b"])
    (" (did you mean 'adam8bit'?)", " (did you mean 'gpt3-175b'?)")
    """
    word, names = str(value), [name for name in known if isinstance(name, str)]
    begun = [name for name in names if word and name.startswith(word)]
    holding = [name for name in names if len(word) > 2 and word in name]
    close = sorted(begun or holding, key=len) or get_close_matches(word, names, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
