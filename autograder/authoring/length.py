"""Measures how long a lab is, in prose, solution lines, minutes and points, against limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nbformat import NotebookNode

from autograder.authoring.outline import headings, minutes_and_points

__all__ = ["Length", "length_of", "length_table", "length_violations"]

#: Words of prose in one lab.
MOST_WORDS = 2500
#: Words of prose per line of solution that students write.
MOST_WORDS_A_LINE = 45

_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_SOLUTION = re.compile(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", re.DOTALL)
_COLUMNS = ("lab", "cells", "words", "lines", "words/line", "core", "stretch", "points")


@dataclass(frozen=True)
class Length:
    """A lab's length."""

    #: Cells of the source notebook.
    cells: int
    #: Words of prose.
    words: int
    #: Lines of solution with code.
    solution_lines: int
    #: Minutes of the core and of the stretch.
    minutes: tuple[int, int]
    #: Points of the core and of the stretch.
    points: tuple[float, float]

    @property
    def words_a_line(self) -> float:
        """Words of prose per line of solution."""
        return self.words / max(self.solution_lines, 1)


def length_of(notebook: NotebookNode) -> Length:
    """Return the length of a lab's source notebook.

    Words are those of its Markdown without fenced code; solution lines are those with code.
    """
    exercises = headings(notebook)
    core, stretch = (minutes_and_points(exercises, kind) for kind in ("core", "stretch"))
    return Length(
        cells=len(notebook.cells),
        words=sum(_words(c.source) for c in notebook.cells if c.cell_type == "markdown"),
        solution_lines=sum(_lines(c.source) for c in notebook.cells if c.cell_type == "code"),
        minutes=(core[0], stretch[0]),
        points=(core[1], stretch[1]),
    )


def length_violations(notebook: NotebookNode) -> Iterator[str]:
    """Yield a sentence for each limit that a lab's prose breaks."""
    length = length_of(notebook)
    if length.words > MOST_WORDS:
        yield (
            f"its markdown: it has {length.words:,} words of prose; expected at most "
            f"{MOST_WORDS:,}. Cut sentences that no student would miss."
        )
    if length.words_a_line > MOST_WORDS_A_LINE:
        yield (
            f"its markdown: it has {length.words_a_line:.0f} words of prose per line of solution; "
            f"expected at most {MOST_WORDS_A_LINE}. Cut text."
        )


def length_table(lengths: dict[str, Length]) -> str:
    """Return a table of labs' lengths as text, with `!` behind values over their limits."""
    rows = [[*_COLUMNS]]
    for lab, length in lengths.items():
        a_line = f"{length.words_a_line:.0f}"
        rows.append(
            [
                lab,
                str(length.cells),
                f"{length.words}{'!' * (length.words > MOST_WORDS)}",
                str(length.solution_lines),
                f"{a_line}{'!' * (length.words_a_line > MOST_WORDS_A_LINE)}",
                *(f"{minutes} min" for minutes in length.minutes),
                "{:g} + {:g}".format(*length.points),
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            text.ljust(width) if index == 0 else text.rjust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([*lines, f"! more than {MOST_WORDS:,} words, or {MOST_WORDS_A_LINE} a line"])


def _words(markdown: str) -> int:
    return sum(any(map(str.isalpha, word)) for word in _FENCED.sub("", markdown).split())


def _lines(source: str) -> int:
    """Lines with code in the solution's regions, without blank lines and comments."""
    regions = "\n".join(_SOLUTION.findall(source))
    return sum(bool(line.strip()) and line.strip()[0] != "#" for line in regions.splitlines())
