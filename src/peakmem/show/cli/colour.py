"""Colour on terminals; files, pipes and NO_COLOR get plain text."""

from __future__ import annotations

import os
import sys
from typing import TextIO

__all__ = ["BAD", "GOOD", "paint"]

GOOD, BAD = "green", "bold red"


def paint(line: str, style: str, to: TextIO | None = None) -> None:
    """Print a line, styled on a terminal; to standard output by default."""
    to = to or sys.stdout
    if not style or not to.isatty() or os.environ.get("NO_COLOR"):
        print(line, file=to, flush=True)
        return
    from rich.console import Console  # late, because only a terminal needs it
    from rich.text import Text

    Console(file=to).print(Text(line, style), soft_wrap=True)
