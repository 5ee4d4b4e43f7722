"""Formats a count with its noun, and the beginning of a long list."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["first_of", "plural"]


def plural(count: int, noun: str) -> str:
    """Return a count with a regular noun in the singular or plural.

    >>> plural(1, "submission"), plural(0, "answer")
    ('1 submission', '0 answers')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def first_of(names: Sequence[str], most: int = 5) -> str:
    """Return the first names of a list and how many more there are.

    >>> first_of(["a", "b"]), first_of(["a", "b", "c"], most=1)
    ('a, b', 'a and 2 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
