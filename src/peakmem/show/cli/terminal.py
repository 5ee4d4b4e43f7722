"""Text for terminals: coloured, and wrapped to their width.

Files and pipes get the text as it is, so that a line stays a line to `grep`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from typing import TextIO

__all__ = ["BAD", "GOOD", "TITLE", "fitted", "painted", "tell", "wrapped"]

GOOD, BAD = "green", "bold red"
TITLE = "\x1b[1m"  # bold: an escape sequence, because help is text before it is printed

_NARROWEST = 40  # columns
_COMMAND = re.compile(r" *-> ")  # before a command to copy, which stays on one line
# What a line's continuation is indented by: a bullet, or all columns but the last.
_HEAD = re.compile(r".{0,40} {2}(?=\S)| *(?:- )?")
_WORD = re.compile(r" +|(?:`[^`]*`|\S)+")  # a command in backticks is one word


def painted(text: str, style: str, to: TextIO | None = None) -> str:
    """Return the text in bold, if it goes to a terminal; to standard output by default."""
    return f"{style}{text}\x1b[0m" if _is_coloured(to or sys.stdout) else text


def tell(*texts: str, style: str = "", to: TextIO | None = None) -> None:
    """Print each text, wrapped and styled on a terminal; to standard output by default."""
    to = to or sys.stdout
    for text in texts:
        lines = fitted(text, to)
        if not style or not _is_coloured(to):
            print(lines, file=to, flush=True)
            continue
        from rich.console import Console  # late, because only a terminal needs it
        from rich.text import Text

        Console(file=to).print(Text(lines, style), soft_wrap=True)


def fitted(text: str, to: TextIO) -> str:
    """Return the text, wrapped if it goes to a terminal."""
    if not to.isatty():
        return text
    return wrapped(text, max(shutil.get_terminal_size().columns, _NARROWEST))


def wrapped(text: str, columns: int) -> str:
    """Return the text with long lines wrapped at spaces, and their continuations indented.

    A word longer than a line and a command in backticks or after an arrow stay whole.

    >>> print(wrapped("  s01  One of `a b` and another.", 16))
      s01  One of
           `a b` and
           another.
    """
    return "\n".join(part for line in text.split("\n") for part in _parts(line, columns))


def _parts(line: str, columns: int) -> Iterator[str]:
    if len(line) <= columns or _COMMAND.match(line):
        yield line
        return
    found = _HEAD.match(line)
    head = found[0] if found else ""
    margin = " " * min(len(head), columns // 2)
    part, is_empty = head, True
    for word in _WORD.findall(line[len(head) :]):
        if not is_empty and not word.isspace() and len(part) + len(word) > columns:
            yield part.rstrip()
            part, is_empty = margin, True
        if not (is_empty and word.isspace()):
            part, is_empty = part + word, False
    yield part


def _is_coloured(to: TextIO) -> bool:
    return to.isatty() and not os.environ.get("NO_COLOR")
