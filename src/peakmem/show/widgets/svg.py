"""SVG pictures for calculators, built as text, without the course's arithmetic.

A string appears in milliseconds, but a new matplotlib figure takes a tenth of a second. Pictures
are 480 units wide, and 620 pixels if the page has room: text of 14 units is 18 pixels high, and on
a projector of 1280 by 720, 390 units of height leave room for the guess. Their background is white
in JupyterLab's dark theme too, like that of matplotlib's figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from peakmem.show.palette import INK

__all__ = [
    "INK",
    "PALE",
    "WIDTH",
    "Scale",
    "axis_x",
    "axis_y",
    "key",
    "limit",
    "line",
    "path",
    "picture",
    "rect",
    "text",
    "ticks",
]

WIDTH = 480
PALE = "#d9d9d9"


class Scale:
    """A linear map from values to positions: `scale(value)` is in units of the picture.

    >>> Scale(0, 10, 50, 450)(5)
    250.0
    """

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = low, high if high > low else low + 1
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 2)


def picture(height: float, parts: Iterable[str], label: str) -> str:
    """Return a whole picture; screen readers announce `label`."""
    body = "".join(parts)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(label)}" '
        'style="display:block;width:100%;max-width:620px;font-family:sans-serif;'
        f'background:#ffffff">{body}</svg>'
    )


def rect(
    x: float, y: float, width: float, height: float, fill: str, *, title: str = "", more: str = ""
) -> str:
    """Return a filled rectangle; `title` is its tooltip."""
    inner = f"<title>{escape(title)}</title>" if title else ""
    size = f'x="{x:g}" y="{y:g}" width="{max(width, 0):g}" height="{max(height, 0):g}"'
    return f'<rect {size} fill="{fill}" {more}>{inner}</rect>'


def line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    *,
    colour: str = INK,
    width: float = 1,
    dash: str = "",
) -> str:
    """Return a straight line; `dash` is a pattern such as "6 3"."""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    ends = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width:g}"{dashes}/>'


def limit(x: float, bottom: float, label: str) -> list[str]:
    """Return a dashed vertical line with a label above it, on the side that has more room."""
    anchor = "end" if x > WIDTH / 2 else "start"
    return [line(x, 24, x, bottom, width=2, dash="6 3"), text(x, 16, label, anchor=anchor)]


def key(x: float, y: float, fill: str, label: str, *, more: str = "") -> list[str]:
    """Return a legend's entry: a square and its label."""
    return [rect(x, y, 16, 16, fill, more=more), text(x + 22, y + 13, label)]


def path(
    points: Sequence[tuple[float, float]], *, colour: str, width: float = 2, dash: str = ""
) -> str:
    """Return a line through points."""
    stroke = f'stroke="{colour}" stroke-width="{width:g}"'
    stroke += f' stroke-dasharray="{dash}"' if dash else ""
    where = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline points="{where}" fill="none" {stroke}/>'


def text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    colour: str = INK,
    bold: bool = False,
) -> str:
    """Return a line of text; `anchor` is start, middle or end."""
    weight = ' font-weight="bold"' if bold else ""
    where = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="14"'
    return f'<text {where} fill="{colour}"{weight}>{escape(words)}</text>'


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round values from `low` to `high`, `about` that many.

    >>> ticks(0, 80)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    """
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(n * step, 12) for n in range(first, last + 1)]


def axis_x(scale: Scale, y: float, label: str, marks: Mapping[float, str] | None = None) -> str:
    """Return a horizontal axis at height `y`, with values and the label below it.

    `marks` maps values to their labels; None chooses round values.
    """
    parts = [line(scale.start, y, scale.end, y)]
    for value, words in (marks or _named(ticks(scale.low, scale.high))).items():
        x = scale(value)
        parts += [line(x, y, x, y + 5), text(x, y + 19, words, anchor="middle")]
    middle = (scale.start + scale.end) / 2
    return "".join([*parts, text(middle, y + 37, label, anchor="middle")])


def axis_y(scale: Scale, x: float, label: str, marks: Mapping[float, str] | None = None) -> str:
    """Return a vertical axis at `x`, with grid lines, and the label on top.

    `marks` maps values to their labels; None chooses round values.
    """
    parts = []
    for value, words in (marks or _named(ticks(scale.low, scale.high, 4))).items():
        y = scale(value)
        parts.append(line(x, y, WIDTH - 8, y, colour=PALE))
        parts.append(text(x - 6, y + 5, words, anchor="end"))
    parts.append(line(x, scale.start, x, scale.end))
    return "".join([*parts, text(4, min(scale.start, scale.end) - 8, label)])


def _named(values: Iterable[float]) -> dict[float, str]:
    return {value: f"{value:g}" for value in values}
