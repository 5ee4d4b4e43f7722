"""Plots of number formats: their numbers, the gaps between them, and sums that stall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatterMathtext, LogLocator

from peakmem.show.plots.style import LABEL_SIZE, SERIES, TICK_SIZE, Numbers, labelled, line_look

__all__ = [
    "number_line",
    "relative_spacing",
    "running_sum",
]


def number_line(
    ax: Axes,
    values: Numbers,
    gaps: Iterable[tuple[float, float, float]] = (),
    *,
    label: str = "value",
) -> Axes:
    """Draw a tick for each number of a small format, and label the gaps between them.

    `values` are finite numbers in any order. An item of `gaps` is (first, last, gap): neighbours
    from `first` to `last` are `gap` apart. Each span is shaded and labelled with its gap. `label`
    names the axis. A figure of 8 x 2.2 inches suits the plot.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> spans = [(0, 2, 0.5), (2, 4, 1), (4, 6, 2)]
    >>> number_line(ax, [0, 0.5, 1, 1.5, 2, 3, 4, 6], spans, label="FP4 E2M1").get_xlabel()
    'FP4 E2M1'
    """
    colours: dict[float, str] = {}  # equal gaps have one colour on both sides of zero
    for first, last, gap in gaps:
        colour = colours.setdefault(gap, SERIES[len(colours) % 2])
        ax.axvspan(first, last, ymax=0.8, color=colour, alpha=0.18, linewidth=0)
        ax.annotate(
            f"{gap:g}",
            ((first + last) / 2, 0.83),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="bottom",
            fontsize=TICK_SIZE,
            color=colour,
        )
    if colours:
        ax.set_title("gap between neighbours", fontsize=TICK_SIZE)
    ax.vlines(values, 0, 0.6, color="black", linewidth=1.5)
    ax.set_ylim(0, 1)
    ax.set_yticks([])
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.set_xlabel(label, fontsize=LABEL_SIZE)
    ax.tick_params(labelsize=TICK_SIZE)
    return ax


def relative_spacing(ax: Axes, curves: Mapping[str, tuple[Numbers, Numbers]]) -> Axes:
    """Draw the gaps between neighbouring numbers, relative to their size, for several formats.

    `curves` is name -> (values, spacings), with positive values in ascending order. A spacing is
    the gap to the next number divided by the value. Both axes are in powers of two. Give values at
    powers of two: between them, the spacing falls to half and jumps back, too finely to see.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> relative_spacing(ax, {"float16": ([1.0, 2.0], [2**-10, 2**-10])}).get_xscale()
    'log'
    """
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    for axis, base in ((ax.xaxis, 2.0**32), (ax.yaxis, 2.0**4)):  # ticks at round exponents
        axis.set_major_locator(LogLocator(base=base))
        axis.set_major_formatter(LogFormatterMathtext(base=2))
        axis.set_minor_locator(LogLocator(base=base, subs=()))
    for index, (name, (values, spacings)) in enumerate(curves.items()):
        ax.plot(values, spacings, label=name, **line_look(index))
    return labelled(ax, "value", "gap to the next number / value")


def running_sum(ax: Axes, sums: Mapping[str, Numbers], *, stalls_at: float | None = None) -> Axes:
    """Draw running sums: item `i` of a curve is the sum after `i` additions, item 0 the start.

    `sums` is name -> sums. `stalls_at` marks a sum that stops growing.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> running_sum(ax, {"float16": [0.0, 0.01, 0.02]}, stalls_at=32.0).get_xlabel()
    'number of additions'
    """
    for index, (name, values) in enumerate(sums.items()):
        ax.plot(values, label=name, **line_look(index))
    if stalls_at is not None:
        ax.axhline(stalls_at, color="black", linewidth=1, linestyle=":")
        ax.annotate(
            f"stalls at {stalls_at:g}",
            (0.02, stalls_at),
            xycoords=("axes fraction", "data"),
            xytext=(0, 4),
            textcoords="offset points",
            fontsize=TICK_SIZE,
        )
    return labelled(ax, "number of additions", "sum")
