"""Bytes as whole numbers: decimal and binary units, and both of them when printed.

A GB is 10^9 bytes; a GiB is 2^30 bytes, 7.4% more. Data sheets say "GB" for either one, so nothing
here prints one without the other. Calculate in bytes (int), and convert only to print.
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
    """Return bytes as text in decimal and binary units, with two digits after the point.

    >>> both(16 * GB)
    '16.00 GB (14.90 GiB)'
    >>> both(512)
    '512 B'

    The unit is the largest that leaves at least 1 before the point; a difference may be negative.
    Raises ValueError for anything but a whole number.
    """
    try:
        count = operator.index(n_bytes)
    except TypeError:
        raise ValueError(
            f"expected a whole number of bytes, but got {n_bytes!r}; "
            "round it first, up (math.ceil) where it must fit"
        ) from None
    if abs(count) < KB:
        return f"{count} B"
    # Rounded before it is compared, 999,999,999 is "1.00 GB" and never "1000.00 MB".
    letter = next((c for c in "KMG" if round(abs(count) / _SIZES[c + "B"], 2) < 1000), "T")
    decimal, binary = letter + "B", letter + "iB"
    return f"{count / _SIZES[decimal]:.2f} {decimal} ({count / _SIZES[binary]:.2f} {binary})"


def parse(text: str) -> int:
    """Return the bytes that a text such as "80GB", "80 GiB" or "1.5 TB" names.

    >>> parse("80GB"), parse("80 GiB")
    (80000000000, 85899345920)

    A part of a byte is dropped, so that a budget is never larger than what was written. Units are
    told apart by their case: "Gb" would be bits. Raises ValueError for any other text.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text, re.ASCII)
    if match is None or match[2] not in _SIZES:
        raise ValueError(
            f"{text!r} is no amount of memory: expected a number and one of the units "
            f"{', '.join(_SIZES)}, such as '80GB' (80 x 10^9 bytes) or '80 GiB' (80 x 2^30 bytes)"
        )
    return int(Fraction(match[1]) * _SIZES[match[2]])
