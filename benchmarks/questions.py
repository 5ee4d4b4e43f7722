"""Runs the commands of docs/questions.md and puts their output below each.

Run as `python -m benchmarks.questions` from the repository's root after a change to a figure, and
read the difference.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from peakmem.show.cli.app import main as peakmem

__all__ = ["PAGE", "answer", "blocks", "main"]

PAGE = Path("docs/questions.md")
_BLOCK = re.compile(r"```\n\$ peakmem (?P<command>[^\n]+)\n(?P<answer>.*?)```\n", re.DOTALL)


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Yield each command on a page with the answer below it."""
    for found in _BLOCK.finditer(page):
        yield found["command"], found["answer"]


def answer(command: str) -> str:
    """Run a command and return what it prints, with its exit status as the last line."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(action="ignore"):
        status = peakmem(command.split())
    return f"{printed.getvalue()}$ echo $?\n{status}\n"


def main() -> int:
    """Rewrite the page's answers."""
    page = PAGE.read_text("utf-8")

    def fresh(found: re.Match[str]) -> str:
        return f"```\n$ peakmem {found['command']}\n{answer(found['command'])}```\n"

    PAGE.write_text(_BLOCK.sub(fresh, page), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
