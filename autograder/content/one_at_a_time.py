"""Calls that differ in one argument each, to catch results cached under too few arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["one_at_a_time"]


def one_at_a_time(call: Sequence[Any], others: Mapping[int, Any]) -> list[list[Any]]:
    """Return the call, then one call for each of `others` with the argument at its index replaced.

    >>> one_at_a_time([1, "a"], {0: 2, 1: "b"})
    [[1, 'a'], [2, 'a'], [1, 'b']]
    """
    changed = ([*call[:i], other, *call[i + 1 :]] for i, other in others.items())
    return [list(call), *changed]
