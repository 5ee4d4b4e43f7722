"""Suggests the name that a misspelt one was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterable

from peakmem.core.errors import closest

__all__ = ["did_you_mean"]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` Did you mean X?` to append to a message; empty if no known name is close.

    A lab may also be named by its number alone, the part before the underscore.

    >>> did_you_mean("grde", ["grade", "export"]), did_you_mean("lab1", ["lab01_formats"])
    (' Did you mean grade?', ' Did you mean lab01_formats?')
    >>> did_you_mean("mark", ["grade", "export"])
    ''
    """
    names = {part: name for name in known for part in (name.partition("_")[0], name)}
    near = closest(word, names)
    return f" Did you mean {names[near]}?" if near else ""
