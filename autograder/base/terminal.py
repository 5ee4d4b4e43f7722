"""The one way text leaves for a terminal or a log, no matter who wrote it."""

from __future__ import annotations

import sys
from typing import TextIO
from unicodedata import category

__all__ = ["say", "shown"]

_KEPT = "\n\t"


def say(*texts: str, to: TextIO | None = None) -> None:
    """Print each text on lines of its own, to standard output if nothing else is said."""
    for text in texts:
        print(shown(text), file=to or sys.stdout, flush=True)


def shown(text: str) -> str:
    r"""Return the text with all that a terminal would act on as escapes, which can be read.

    Those are control characters, 8-bit ones too, what turns the direction of writing around, what
    has no width, and halves of characters, which cannot be written at all.

    >>> print(shown("a\x1b]52;c;bHM=\x07b"))
    a\x1b]52;c;bHM=\x07b
    """
    if text.isprintable():
        return text
    return "".join(c if _is_harmless(c) else c.encode("unicode-escape").decode() for c in text)


def _is_harmless(character: str) -> bool:
    # A blank such as the no-break space is not printable to Python.
    return character.isprintable() or character in _KEPT or category(character) == "Zs"
