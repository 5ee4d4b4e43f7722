"""Sanitises exceptions reported by a student's process, and explains those that a budget caused."""

from __future__ import annotations

import errno
import os
from typing import Any

from autograder.base.plain_text import plain_text
from peakmem.core.errors import RankError

__all__ = ["explained", "three_texts"]

# What a budget refuses other than memory, as Python reports it.
_REFUSED_BESIDE = {
    ("RuntimeError", "can't start new thread"),
    ("BlockingIOError", f"[Errno {errno.EAGAIN}] {os.strerror(errno.EAGAIN)}"),
    ("OSError", f"[Errno {errno.EFBIG}] {os.strerror(errno.EFBIG)}"),
}
_WHILE_MEASURED = (
    "While its memory is measured, your code can't start a thread or process, or write to a file."
)


def explained(kind: str, message: str, trace: str) -> tuple[str, str, str]:
    """Return the exception of a call under a budget as (type's name, message, traceback).

    The message explains it if the budget refused something other than memory.

    >>> explained("OSError", "[Errno 27] File too large", "")[1].endswith("write to a file.")
    True
    """
    if kind == RankError.__name__:  # the message holds the rank's own error, then its place
        first = message.partition("\n")[0]
        ours = any(first.endswith(f" {name}: {text}") for name, text in _REFUSED_BESIDE)
    else:
        ours = (kind, message) in _REFUSED_BESIDE
    return kind, f"{message}. {_WHILE_MEASURED}" if ours else message, trace


def three_texts(raised: Any) -> tuple[str, str, str]:
    """Return a reported exception as three strings of bounded length, whatever was sent."""
    parts = raised if isinstance(raised, (list, tuple)) else ()
    texts = [plain_text(part[:1000]) if isinstance(part, str) else "" for part in parts[:3]]
    kind, message, trace = (*texts, "", "", "")[:3]
    return kind, message, trace
