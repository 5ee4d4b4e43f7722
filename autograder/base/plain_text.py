"""Text as a terminal would finally show it, without codes that control the terminal."""

from __future__ import annotations

import re

__all__ = ["one_line", "plain_text", "shortened", "text_of", "visible"]

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b.?")
# Includes 8-bit control characters, and characters that reverse the writing direction. The last
# range is surrogates, which can't be written to a file or a database.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def text_of(value: object) -> str:
    """Return a text of nbformat's JSON (a string or a list of strings) as one string."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def plain_text(value: object) -> str:
    r"""Return what a terminal would finally show: no colour codes, only the last progress bar.

    >>> plain_text("10%\r100%\n\x1b[31mred\x1b[0m \x9b2J\u202e")
    '100%\nred 2J'
    """
    lines = _ANSI.sub("", text_of(value)).split("\n")
    last = (line.rstrip("\r").rpartition("\r")[2] for line in lines)
    return _CONTROL.sub("", "\n".join(last))


def one_line(text: str, most: int) -> str:
    r"""Return the text on one line of at most `most` characters.

    >>> one_line("a  test\nfailed", 9)
    'a test...'
    """
    return shortened(" ".join(text.split()), most)


def shortened(line: str, most: int) -> str:
    """Return the line, its end replaced by dots if it has over `most` characters."""
    return line if len(line) <= most else f"{line[: most - 3]}..."


def visible(text: str) -> str:
    r"""Return text, or code, with the characters that `plain_text` would remove as escapes.

    These would make code look as if it did something else, or control the terminal on which someone
    searches a page.

    >>> print(visible("x = 1  # \u202e y"))
    x = 1  # \u202e y
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode-escape").decode(), text)
