"""The one way a table leaves for a spreadsheet, whatever students wrote into it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable

__all__ = ["cell_text", "csv_bytes", "no_formula"]

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
# A spreadsheet splits at its own country's separator, whatever the file was written with, so each
# of them may begin a cell. The full-width signs begin a formula where it is set to Japanese or
# Chinese. Beyond a separator a number by itself may stay, as in `[1, -2]`: it computes nothing.
_BEGINNING = re.compile(
    r"""(?P<after>^|[;,|\t\n])(?P<blank>["\s]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])"""
    r"""(?P<number>(?=[+-](\d+(\.\d*)?(e[+-]?\d+)?|inf)[])}\s.]*([;,|\t\n]|$)))?"""
)


def csv_bytes(rows: Iterable[Iterable[object]], as_is: Collection[str] = ()) -> bytes:
    """Return rows as a CSV file in UTF-8, every cell in quotes, each row ended by a line feed.

    What is no plain number, and not among the texts `as_is`, passes `cell_text`.
    """
    data = io.BytesIO()  # StringIO would take four bytes a character
    text = io.TextIOWrapper(data, "utf-8", errors="replace", newline="")
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        writer.writerow([_cell(str(value), as_is) for value in row])
    text.flush()
    return data.getvalue()


def _cell(text: str, as_is: Collection[str]) -> str:
    return text if text in as_is or _NUMBER.fullmatch(text) else cell_text(text)


def cell_text(text: str) -> str:
    r"""Return a text on one line that no spreadsheet takes for a formula.

    Tabs, returns and other control characters become spaces, none at its ends.

    >>> cell_text("=1+1"), cell_text("\t@a\nb"), cell_text("a - b"), cell_text("a;=b, -1")
    ("'=1+1", "'@a b", 'a - b', "a;'=b, -1")
    """
    return no_formula("".join(c if c.isprintable() else " " for c in text).strip())


def no_formula(text: str) -> str:
    """Return the text with an apostrophe wherever a spreadsheet might begin to run it."""
    return _BEGINNING.sub(_defused, text)


def _defused(found: re.Match[str]) -> str:
    apostrophe = "" if found["after"] and found["number"] is not None else "'"
    return f"{found['after']}{found['blank']}{apostrophe}"
