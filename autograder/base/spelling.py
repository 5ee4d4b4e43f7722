"""Suggests the name that a misspelt one was probably meant to be."""

from __future__ import annotations

import re
from collections.abc import Iterable

from peakmem.core.errors import closest

__all__ = ["begun_by", "did_you_mean"]


def begun_by(word: str, names: Iterable[str]) -> list[str]:
    """Return the names that start with a word that isn't empty and doesn't end within a number.

    >>> begun_by("lab1", ["lab01_formats", "lab10_attention"])
    []
    >>> begun_by("lab10", ["lab01_formats", "lab10_attention"])
    ['lab10_attention']
    """
    rest = len(word)
    return [
        name
        for name in names
        if word
        and name.startswith(word)
        and not (word[-1].isdigit() and name[rest : rest + 1].isdigit())
    ]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` Did you mean X?` to append to a message; empty if no known name is close.

    A lab may also be named by its number alone, the part before the underscore.

    >>> did_you_mean("grde", ["grade", "export"])
    ' Did you mean grade?'
    >>> did_you_mean("lab1", ["lab01_formats", "lab10_attention"])
    ' Did you mean lab01_formats?'
    >>> did_you_mean("mark", ["grade", "export"])
    ''
    """
    names: dict[str, str] = {}
    for name in known:
        number = name.partition("_")[0]
        names |= dict.fromkeys((name, number, re.sub(r"0+(?=\d)", "", number)), name)
    near = closest(word, names)
    return f" Did you mean {names[near]}?" if near else ""
