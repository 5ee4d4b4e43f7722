"""Exceptions as a student's process tells them: taken in form, explained where a budget did it."""

from __future__ import annotations

import errno
import os
from typing import Any

from autograder.base.cleaning import plain_text
from peakmem.core.errors import RankError

__all__ = ["explained", "three_texts"]

# What a budget refuses beside memory, as Python tells it.
_REFUSED_BESIDE = {
    ("RuntimeError", "can't start new thread"),
    ("BlockingIOError", f"[Errno {errno.EAGAIN}] {os.strerror(errno.EAGAIN)}"),
    ("OSError", f"[Errno {errno.EFBIG}] {os.strerror(errno.EFBIG)}"),
}
_WHILE_MEASURED = (
    "While its memory is measured, your code can start no thread or process and write to no file."
)


def explained(kind: str, message: str, trace: str) -> tuple[str, str, str]:
    """Return an exception as (type's name, message, traceback) of a call under a budget.

    Where the budget refused something beside memory, the message says so.

    >>> explained("OSError", "[Errno 27] File too large", "")[1].endswith("write to no file.")
    True
    """
    if kind == RankError.__name__:  # its message has the rank's own error, and then where it was
        first = message.partition("\n")[0]
        ours = any(first.endswith(f" {name}: {text}") for name, text in _REFUSED_BESIDE)
    else:
        ours = (kind, message) in _REFUSED_BESIDE
    return kind, f"{message}. {_WHILE_MEASURED}" if ours else message, trace


def three_texts(raised: Any) -> tuple[str, str, str]:
    """Return an exception as sent: believed only in its form, and cut to a bearable length."""
    parts = raised if isinstance(raised, (list, tuple)) else ()
    texts = [plain_text(part[:1000]) if isinstance(part, str) else "" for part in parts[:3]]
    kind, message, trace = (*texts, "", "", "")[:3]
    return kind, message, trace
