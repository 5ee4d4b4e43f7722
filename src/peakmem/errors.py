"""The errors that this library raises, each with what a person needs to act on it."""

from __future__ import annotations

__all__ = ["Infeasible", "NotDefined", "OutOfMemory", "require_whole"]


class OutOfMemory(MemoryError):
    """A run needed more memory than its budget.

    `needed_bytes` is what was live when the run was stopped, `budget_bytes` what it may have.
    Both are None where a device reported only that it was full.
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


class Infeasible(ValueError):
    """No plan keeps within the budget; `least_budget_bytes` is the smallest that would do."""

    def __init__(self, message: str, *, least_budget_bytes: int | None = None) -> None:
        super().__init__(message)
        self.least_budget_bytes = least_budget_bytes


class NotDefined(NameError):
    """A function or class that an exercise asks for is not in the notebook."""


def require_whole(name: str, value: object) -> None:
    """Raise ValueError, with the name, for anything but a whole number of at least 1.

    >>> require_whole("batch", 8)
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"expected {name} to be a whole number of at least 1, but got {value!r}")
