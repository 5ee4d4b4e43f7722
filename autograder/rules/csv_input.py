"""Reads the rows of a CSV file that an instructor made, most often with a spreadsheet.

Commas, semicolons or tabs may separate its cells, and it may have blank rows. Ambiguous content is
refused: the error names the file, the row and the remedy.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["header_of", "rows"]

_SEPARATORS = ",;\t"
_CANVAS = "SIS Login ID"  # a column in Canvas's exports
_FROM_CANVAS = (
    "; in Canvas's gradebook export, rename `SIS Login ID` to id and `ID` to lms_user_id, and "
    "delete the rows that aren't students'"
)


def header_of(path: Path) -> list[str]:
    """Return the names of the columns, from the first row.

    Raises ValueError if the file can't be read or is empty.
    """
    for _, cells in _whole(path, _lines(path)):
        return [cell.strip() for cell in cells]
    raise ValueError(f"{path} is empty; expected a first row with the columns' names")


def rows(
    path: Path, needed: Sequence[str], also: Sequence[str], key: Sequence[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each row's place, and its cells by the columns `needed` and `also`.

    The values of the columns `key` must be unique, ignoring case.

    Raises ValueError if the file or a row isn't as expected.
    """
    header: list[str] | None = None
    seen: dict[tuple[str, ...], int] = {}
    for number, cells in _whole(path, _lines(path)):
        where = f"{path}, row {number}"
        if header is None:
            header = [cell.strip() for cell in cells]
            _check_header(path, header, needed)
        elif len(cells) > len(header):
            raise ValueError(
                f"{where}: it has {len(cells)} cells; expected at most {len(header)}, as in the "
                "first row. A text that contains a comma needs quotes around it."
            )
        else:
            row = dict.fromkeys((*needed, *also), "")
            found = dict(zip(header, (cell.strip() for cell in cells), strict=False))
            row |= {name: found[name] for name in row if name in found}
            values = tuple(row[name].casefold() for name in key)
            if key and values in seen:
                told = ", ".join(f"{name} {row[name]!r}" for name in key)
                raise ValueError(f"{where}: {told} is already in row {seen[values]}")
            seen[values] = number
            yield where, row
    if header is None:
        raise ValueError(f"{path} is empty; expected a first row with {', '.join(needed)}")


def _lines(path: Path) -> Iterator[list[str]]:
    text = _text(path)
    first = text.lstrip().partition("\n")[0]
    parted_by = max(_SEPARATORS, key=first.count)
    return csv.reader(io.StringIO(text, newline=""), delimiter=parted_by, strict=True)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ValueError(
            f"{path} can't be read ({error.strerror}); expected a CSV file. Restore it from a "
            "backup, or have its owner make it readable for you."
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); in a spreadsheet, "
            "save it as `CSV UTF-8`"
        ) from error


def _whole(path: Path, lines: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """The number and the cells of each row that isn't blank, without empty cells at its end."""
    number = 0
    try:
        for number, cells in enumerate(lines, start=1):
            while cells and not cells[-1].strip():
                cells.pop()
            if cells:
                yield number, cells
    except csv.Error as error:
        raise ValueError(
            f"{path}, row {number + 1}: it can't be read as CSV ({error}); look for an unpaired "
            "quotation mark there"
        ) from error


def _check_header(path: Path, header: Sequence[str], needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in header]
    if missing:
        canvas = _FROM_CANVAS if _CANVAS in header else ""
        raise ValueError(
            f"{path}: its first row is {','.join(header)!r}; expected a column {missing[0]} "
            f"(it needs {', '.join(needed)}){canvas}"
        )
    twice = [name for name, count in Counter(header).items() if count > 1 and name]
    if twice:
        raise ValueError(f"{path}: its first row has {twice[0]!r} twice; expected each column once")
