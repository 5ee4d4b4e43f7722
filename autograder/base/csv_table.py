"""Writes tables as CSV files in which spreadsheets find no formulas to run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable

__all__ = ["cell_text", "csv_bytes", "no_formula"]

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
# A spreadsheet splits at its own locale's separator, however the file was written, so any of them
# may start a cell. The full-width signs start a formula in Japanese and Chinese locales. After a
# separator a lone number may stay, as in `[1, -2]`: it computes nothing. Blanks end at a separator,
# or many of them would be read again from each.
_BEGINNING = re.compile(
    r"""(?P<after>^|[;,|\t\n])(?P<blank>(?:"|[^\S\t\n])*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])"""
    r"""(?P<number>(?=[+-](\d+(\.\d*)?(e[+-]?\d+)?|inf)[])}\s.]*([;,|\t\n]|$)))?"""
)


def csv_bytes(rows: Iterable[Iterable[object]], as_is: Collection[str] = ()) -> bytes:
    """Return rows as a UTF-8 CSV file: every cell quoted, every row ended by a line feed.

    Every value passes `cell_text`, except plain numbers and the texts in `as_is`.
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
    r"""Return the text on one line, such that no spreadsheet takes it for a formula.

    Tabs, returns and other control characters become spaces, and are stripped at both ends.

    >>> cell_text("=1+1"), cell_text("\t@a\nb"), cell_text("a - b"), cell_text("a;=b, -1")
    ("'=1+1", "'@a b", 'a - b', "a;'=b, -1")
    """
    return no_formula("".join(c if c.isprintable() else " " for c in text).strip())


def no_formula(text: str) -> str:
    """Return the text with an apostrophe wherever a spreadsheet might start a formula."""
    return _BEGINNING.sub(_defused, text)


def _defused(found: re.Match[str]) -> str:
    apostrophe = "" if found["after"] and found["number"] is not None else "'"
    return f"{found['after']}{found['blank']}{apostrophe}"
