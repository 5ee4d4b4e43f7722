"""Formats a count with its noun, singular or plural."""

from __future__ import annotations

__all__ = ["plural"]


def plural(count: int, noun: str) -> str:
    """Return a count with a regular noun in the singular or plural.

    >>> plural(1, "submission"), plural(0, "answer")
    ('1 submission', '0 answers')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"
