"""Plots of time: Gantt charts, time per sample, and links that make a copy free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from peakmem.show.palette import ACTIONS
from peakmem.show.plots.style import LABEL_SIZE, SERIES, TICK_SIZE, Numbers, labelled, line_look

__all__ = [
    "break_even",
    "gantt",
    "time_per_sample",
]


def gantt(
    ax: Axes, lanes: Mapping[str, Sequence[tuple[str, str, float, float]]], *, unit: str
) -> Axes:
    """Draw a Gantt chart with one lane for each resource.

    `lanes` is name -> bars, the first at the top. A bar is (kind, text, start, end), with times in
    `unit`; `text` is written on it. Bars of one kind have one colour and hatch. The time axis
    starts with the first bar.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> lanes = {"compute": [("forward", "0", 0, 1)], "link": [("out", "0", 1, 3)]}
    >>> gantt(ax, lanes, unit="ms").get_xlabel()
    'time (ms)'
    """
    hatches = ("", "//", "..", "xx", "\\\\", "++")
    kinds = list(dict.fromkeys(kind for bars in lanes.values() for kind, *_ in bars))
    for place, bars in enumerate(lanes.values()):
        for kind in dict.fromkeys(kind for kind, *_ in bars):
            spans = [(start, end - start) for other, _, start, end in bars if other == kind]
            index = kinds.index(kind)
            ax.broken_barh(
                spans,
                (place - 0.4, 0.8),
                facecolors=ACTIONS.get(kind, SERIES[index % len(SERIES)]) + "90",  # pale, for text
                edgecolor="black",
                hatch=hatches[index % len(hatches)],
                label=kind if kind not in ax.get_legend_handles_labels()[1] else None,
            )
        for _, text, start, end in bars:
            ax.text(
                (start + end) / 2,
                place,
                text,
                ha="center",
                va="center",
                fontsize=TICK_SIZE,
                bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
            )
    ax.set_ylim(len(lanes) - 0.4, -0.6)
    labelled(ax, f"time ({unit})", "runs on")
    ax.set_yticks(range(len(lanes)), list(lanes), fontsize=LABEL_SIZE)
    starts = [start for bars in lanes.values() for _, _, start, _ in bars]
    ax.set_xlim(left=min(starts, default=0))
    ax.grid(visible=False, axis="y")
    return ax


def time_per_sample(ax: Axes, sizes: Numbers, milliseconds: Numbers) -> Axes:
    """Draw the time per sample over the micro-batch size, in powers of two.

    >>> from matplotlib.figure import Figure
    >>> time_per_sample(Figure().add_subplot(), [1, 2], [8.0, 5.0]).get_ylabel()
    'time per sample (ms)'
    """
    ax.plot(sizes, milliseconds, marker="o", label="measured", **line_look(0))
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(sizes), [f"{size:g}" for size in sizes])
    ax.set_ylim(0, 1.1 * max(milliseconds))
    return labelled(ax, "micro-batch (samples)", "time per sample (ms)")


def break_even(
    ax: Axes,
    intensities: Numbers,
    curves: Mapping[str, Numbers],
    links: Mapping[str, float],
) -> Axes:
    """Draw the bandwidth that makes a swap free, over a stage's arithmetic intensity.

    `curves` is name -> GB/s, one for each of `intensities` (operations per saved byte). `links` is
    name -> GB/s of existing links, drawn as horizontal lines. Both axes are logarithmic.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> break_even(ax, [1e3, 1e4], {"A100": [312.0, 31.2]}, {"PCIe 4": 32}).get_yscale()
    'log'
    """
    ax.set_xscale("log")
    ax.set_yscale("log")
    for index, (name, values) in enumerate(curves.items()):
        ax.plot(intensities, values, label=name, **line_look(index))
    for name, speed in links.items():
        ax.axhline(speed, color="black", linewidth=1, linestyle=":")
        ax.annotate(
            name,
            (0.01, speed),  # on the left, where all curves are high
            xycoords=("axes fraction", "data"),
            xytext=(0, 3),
            textcoords="offset points",
            fontsize=TICK_SIZE,
        )
    return labelled(ax, "compute to hide behind (operations per saved byte)", "bandwidth (GB/s)")
