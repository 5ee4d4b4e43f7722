"""Colour on terminals; files, pipes and NO_COLOR get plain text."""

from __future__ import annotations

import os
import sys
from typing import TextIO

__all__ = ["BAD", "GOOD", "TITLE", "paint", "painted"]

GOOD, BAD = "green", "bold red"
TITLE = "\x1b[1m"  # bold: an escape sequence, because help is text before it is printed


def painted(text: str, style: str, to: TextIO | None = None) -> str:
    """Return the text in bold, if it goes to a terminal; to standard output by default."""
    return f"{style}{text}\x1b[0m" if _is_coloured(to or sys.stdout) else text


def paint(line: str, style: str, to: TextIO | None = None) -> None:
    """Print a line, styled on a terminal; to standard output by default."""
    to = to or sys.stdout
    if not style or not _is_coloured(to):
        print(line, file=to, flush=True)
        return
    from rich.console import Console  # late, because only a terminal needs it
    from rich.text import Text

    Console(file=to).print(Text(line, style), soft_wrap=True)


def _is_coloured(to: TextIO) -> bool:
    return to.isatty() and not os.environ.get("NO_COLOR")
