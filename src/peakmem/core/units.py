"""Amounts of memory: decimal and binary units, printed side by side and parsed from text.

A GB is 10^9 bytes; a GiB is 2^30 bytes, 7.4% more. Data sheets write "GB" for either, so `both`
prints both. Calculate in bytes (int), and convert only to print.
Source of the names: IEC 80000-13.
"""

from __future__ import annotations

import operator
import re
from fractions import Fraction
from typing import SupportsIndex

__all__ = ["GB", "KB", "MB", "TB", "GiB", "KiB", "MiB", "TiB", "both", "parse"]

KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12
KiB, MiB, GiB, TiB = 2**10, 2**20, 2**30, 2**40

_SIZES = {"B": 1, "kB": KB, "KB": KB, "MB": MB, "GB": GB, "TB": TB}
_SIZES |= {"KiB": KiB, "MiB": MiB, "GiB": GiB, "TiB": TiB}


def both(n_bytes: SupportsIndex) -> str:
    """Return bytes as text in decimal and binary units, to two decimal places.

    >>> both(16 * GB)
    '16.00 GB (14.90 GiB)'
    >>> both(512)
    '512 B'

    Uses the largest unit in which the amount is at least 1. `n_bytes` may be negative, as a
    difference of two amounts can be. Raises ValueError if it isn't a whole number.
    """
    try:
        count = operator.index(n_bytes)
    except TypeError:
        raise ValueError(
            f"expected a whole number of bytes, but got {n_bytes!r}; "
            "round it first, up (math.ceil) if it has to fit"
        ) from None
    if abs(count) < KB:
        return f"{count} B"
    # Round before comparing: 999,999,999 has to print as "1.00 GB", not as "1000.00 MB".
    letter = next((c for c in "KMG" if round(abs(count) / _SIZES[c + "B"], 2) < 1000), "T")
    decimal, binary = letter + "B", letter + "iB"
    return f"{count / _SIZES[decimal]:.2f} {decimal} ({count / _SIZES[binary]:.2f} {binary})"


def parse(text: str) -> int:
    """Return the number of bytes in a text such as "80GB", "80 GiB" or "1.5 TB".

    >>> parse("80GB"), parse("80 GiB")
    (80000000000, 85899345920)

    Fractions of a byte are dropped, so that a budget is never larger than its text says. Units are
    case-sensitive, because "Gb" would be bits. Raises ValueError for any other text.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text, re.ASCII)
    if match is None or match[2] not in _SIZES:
        raise ValueError(
            f"{text!r} is not an amount of memory: expected a number and one of the units "
            f"{', '.join(_SIZES)}, such as '80GB' (80 x 10^9 bytes) or '80 GiB' (80 x 2^30 bytes)"
        )
    return int(Fraction(match[1]) * _SIZES[match[2]])
