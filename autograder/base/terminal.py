"""Prints untrusted text safely on a terminal or into a log."""

from __future__ import annotations

import json
from typing import Any, TextIO
from unicodedata import category

from peakmem.show.cli.terminal import tell

__all__ = ["say", "say_json", "shown"]

_KEPT = "\n\t"


def say(*texts: str, to: TextIO | None = None) -> None:
    """Print each text, wrapped on a terminal; to standard output by default."""
    tell(*map(shown, texts), to=to)


def say_json(data: Any) -> None:
    """Print plain data as JSON, in which everything but printable ASCII is escaped."""
    print(json.dumps(data, indent=1, allow_nan=False), flush=True)


def shown(text: str) -> str:
    r"""Return the text with everything that a terminal would act on shown as escapes.

    That covers control characters (8-bit ones too), characters that reverse the writing direction,
    zero-width characters, and unpaired surrogates, which can't be written at all.

    >>> print(shown("a\x1b]52;c;bHM=\x07b"))
    a\x1b]52;c;bHM=\x07b
    """
    if text.isprintable():
        return text
    return "".join(c if _is_harmless(c) else c.encode("unicode-escape").decode() for c in text)


def _is_harmless(character: str) -> bool:
    # Python counts blanks such as the no-break space as not printable.
    return character.isprintable() or character in _KEPT or category(character) == "Zs"
