"""Plots of the labs and lectures: data in, a matplotlib Axes in and out, no arithmetic.

Each function draws what it is given on `ax` and returns it; the caller makes the figure:

    fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    plots.running_sum(ax, {"exact": exact, "float16": sums}, stalls_at=32.0)

Curves differ in colour (the palette of Okabe and Ito, which colour-blind people can tell apart)
and in dashes as well, so that a print in grey can be read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatterMathtext, LogLocator

__all__ = [
    "break_even",
    "gantt",
    "gradient_errors",
    "gradient_histogram",
    "live_timelines",
    "loss_curves",
    "memory_over_length",
    "memory_over_time",
    "number_line",
    "peak_over_batch",
    "peak_over_segments",
    "relative_spacing",
    "running_sum",
    "stacked_bars",
    "time_against_memory",
    "time_per_sample",
]

# Okabe and Ito (2008), without the yellow that a projector washes out.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (3, 1)), (0, (6, 1, 1, 1, 1, 1)), (0, (1, 3)))
_LABEL_SIZE, _TICK_SIZE = 13, 11  # points: legible in a notebook at 8 inches, and on a projector

Numbers = Sequence[float] | npt.NDArray[Any]


def number_line(
    ax: Axes,
    values: Numbers,
    gaps: Iterable[tuple[float, float, float]] = (),
    *,
    label: str = "value",
) -> Axes:
    """Draw a tick for each number that a small format has, and name the gaps between them.

    `values` are finite numbers in any order. An item of `gaps` is (first, last, gap): neighbours
    from `first` to `last` are `gap` apart. Each span is shaded, with its gap written above.
    `label` names the axis. A figure of 8 x 2.2 inches suits it.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> spans = [(0, 2, 0.5), (2, 4, 1), (4, 6, 2)]
    >>> number_line(ax, [0, 0.5, 1, 1.5, 2, 3, 4, 6], spans, label="FP4 E2M1").get_xlabel()
    'FP4 E2M1'
    """
    colours: dict[float, str] = {}  # equal gaps look alike on both sides of zero
    for first, last, gap in gaps:
        colour = colours.setdefault(gap, _COLOURS[len(colours) % 2])
        ax.axvspan(first, last, ymax=0.8, color=colour, alpha=0.18, linewidth=0)
        ax.annotate(
            f"{gap:g}",
            ((first + last) / 2, 0.83),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="bottom",
            fontsize=_TICK_SIZE,
            color=colour,
        )
    if colours:
        ax.set_title("gap between neighbours", fontsize=_TICK_SIZE)
    ax.vlines(values, 0, 0.6, color="black", linewidth=1.5)
    ax.set_ylim(0, 1)
    ax.set_yticks([])
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.set_xlabel(label, fontsize=_LABEL_SIZE)
    ax.tick_params(labelsize=_TICK_SIZE)
    return ax


def relative_spacing(ax: Axes, curves: Mapping[str, tuple[Numbers, Numbers]]) -> Axes:
    """Draw how far apart neighbouring numbers are, relative to their size, for several formats.

    `curves` is name -> (values, spacings) with positive values in rising order, and for each the
    gap to the next number divided by the value. Both axes are in powers of two. Give the values
    at powers of two: between them the spacing falls to half and jumps back, too fine to be seen.

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
        ax.plot(values, spacings, label=name, **_line(index))
    return _labelled(ax, "value", "gap to the next number / value")


def running_sum(ax: Axes, sums: Mapping[str, Numbers], *, stalls_at: float | None = None) -> Axes:
    """Draw sums as they grow: item `i` of a curve is the sum after `i` additions, item 0 the start.

    `sums` is name -> sums. `stalls_at`, where given, marks the sum that grows no more.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> running_sum(ax, {"float16": [0.0, 0.01, 0.02]}, stalls_at=32.0).get_xlabel()
    'number of additions'
    """
    for index, (name, values) in enumerate(sums.items()):
        ax.plot(values, label=name, **_line(index))
    if stalls_at is not None:
        ax.axhline(stalls_at, color="black", linewidth=1, linestyle=":")
        ax.annotate(
            f"stalls at {stalls_at:g}",
            (0.02, stalls_at),
            xycoords=("axes fraction", "data"),
            xytext=(0, 4),
            textcoords="offset points",
            fontsize=_TICK_SIZE,
        )
    return _labelled(ax, "number of additions", "sum")


def memory_over_length(
    ax: Axes,
    lengths: Numbers,
    curves: Mapping[str, Numbers],
    *,
    limit_gb: float | None = None,
    limit_name: str = "budget",
) -> Axes:
    """Draw memory in GB over the length of a sequence, one curve a way to train.

    `curves` is name -> GB, one for each of `lengths`. `limit_gb`, where given, is the memory there
    is; `limit_name` says whose.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> memory_over_length(ax, [512, 1024], {"flash": [1.0, 2.0]}, limit_gb=16).get_ylabel()
    'memory (GB)'
    """
    for index, (name, values) in enumerate(curves.items()):
        ax.plot(lengths, values, label=name, **_line(index))
    if limit_gb is not None:
        ax.axhline(limit_gb, color="black", linewidth=1, linestyle=":")
        ax.annotate(
            limit_name,
            (0.02, limit_gb),
            xycoords=("axes fraction", "data"),
            xytext=(0, 4),
            textcoords="offset points",
            fontsize=_TICK_SIZE,
        )
    return _labelled(ax, "sequence length (tokens)", "memory (GB)")


def stacked_bars(
    ax: Axes,
    bars: Mapping[str, Mapping[str, float]],
    *,
    label: str,
    limit: float | None = None,
    limit_name: str = "budget",
) -> Axes:
    """Draw a lying bar for each name, made of its parts from left to right, its sum at its end.

    `bars` is name -> part -> size, the first on top; a part that a bar lacks has size 0. `label`
    names the axis with its unit. `limit`, where given, is a line that bars may cross; `limit_name`
    says whose it is.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> sizes = {"fp32": {"weights": 4, "gradients": 4}, "bf16": {"weights": 2, "gradients": 2}}
    >>> stacked_bars(ax, sizes, label="bytes a parameter", limit=6).get_xlabel()
    'bytes a parameter'
    """
    parts = list(dict.fromkeys(part for bar in bars.values() for part in bar))
    left = [0.0] * len(bars)
    for index, part in enumerate(parts):
        sizes = [bar.get(part, 0.0) for bar in bars.values()]
        colour = _COLOURS[index % len(_COLOURS)]
        ax.barh(list(bars), sizes, left=left, label=part, color=colour, edgecolor="white")
        left = [start + size for start, size in zip(left, sizes, strict=True)]
    for name, end in zip(bars, left, strict=True):
        ax.annotate(
            f"{end:.3g}" if end < 1000 else f"{end:,.0f}",
            (end, name),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=_TICK_SIZE,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1},
        )
    ax.set_axisbelow(True)
    ax.set_xlim(0, 1.12 * max([*left, limit or 0.0]))  # room for the sums
    ax.invert_yaxis()
    if limit is not None:
        ax.axvline(limit, color="black", linewidth=1.5, linestyle=":", label=limit_name)
    return _labelled(ax, label, "", columns=3)


def live_timelines(ax: Axes, curves: Mapping[str, Numbers], *, unit: str) -> Axes:
    """Draw live memory over the operators that ran, one curve a program, with each peak marked.

    `curves` is name -> memory after each operator, in `unit` (for the axis: "MiB").

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> live_timelines(ax, {"training": [1.0, 3.0, 1.0]}, unit="MiB").get_ylabel()
    'live memory (MiB)'
    """
    for index, (name, values) in enumerate(curves.items()):
        line = _line(index)
        ax.plot(values, label=name, **line)
        peak = max(values)
        at = list(values).index(peak)
        ax.plot([at], [peak], marker="o", markersize=7, color=line["color"], linestyle="none")
        ax.annotate(
            f"{peak:.3g}",
            (at, peak),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=_TICK_SIZE,
            color=line["color"],
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1},
        )
    ax.set_ylim(0, 1.12 * max(map(max, curves.values())))  # room for the peaks' figures
    return _labelled(ax, "operators run so far", f"live memory ({unit})")


def peak_over_segments(ax: Axes, lengths: Numbers, curves: Mapping[str, Numbers]) -> Axes:
    """Draw the peak of a chain over the length of its segments, one curve a way to know it.

    `curves` is name -> peaks in layer outputs, one for each of `lengths`. Points are marked, for
    there are none between them; the axis of lengths is in powers of two.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> peak_over_segments(ax, [1, 2, 4], {"predicted": [5, 4, 5]}).get_xlabel()
    'layers a segment'
    """
    ax.set_xscale("log", base=2)
    for index, (name, peaks) in enumerate(curves.items()):
        ax.plot(lengths, peaks, label=name, marker="os^D"[index % 4], **_line(index))
    ax.set_xticks(lengths, [f"{length:g}" for length in lengths])
    ax.minorticks_off()
    ax.set_ylim(bottom=0)
    return _labelled(ax, "layers a segment", "peak (outputs of a layer)")


def time_against_memory(
    ax: Axes, curves: Mapping[str, Sequence[tuple[float, float]]], *, unit: str
) -> Axes:
    """Draw the least time that fits each budget, one staircase a way to plan.

    `curves` is name -> (budget in `unit`, time) in rising order of budget: from that budget on, a
    plan of that time fits.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> time_against_memory(ax, {"equal": [(8, 5.0), (12, 3.0)]}, unit="MiB").get_xlabel()
    'budget (MiB)'
    """
    most = max(budget for steps in curves.values() for budget, _ in steps)
    for index, (name, steps) in enumerate(curves.items()):
        budgets = [*(budget for budget, _ in steps), 1.05 * most]
        times = [*(time for _, time in steps), steps[-1][1]]
        ax.plot(budgets, times, label=name, drawstyle="steps-post", **_line(index))
    return _labelled(ax, f"budget ({unit})", "time of forward runs (units)")


def memory_over_time(
    ax: Axes,
    curves: Mapping[str, tuple[Numbers, Numbers]],
    *,
    units: tuple[str, str],
    budget: float | None = None,
) -> Axes:
    """Draw live memory over time, one staircase a plan, and the budget as a line.

    `curves` is name -> (times, memory from each time on); `units` are those of memory and of time.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> memory_over_time(ax, {"keep all": ([0, 1, 2], [4, 8, 0])}, units=("GB", "s")).get_xlabel()
    'time (s)'
    """
    for index, (name, (times, memory)) in enumerate(curves.items()):
        ax.plot(times, memory, label=name, drawstyle="steps-post", **_line(index))
    if budget is not None:
        ax.axhline(budget, color="black", linewidth=1.5, linestyle=":", label="budget")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    return _labelled(ax, f"time ({units[1]})", f"live memory ({units[0]})")


def loss_curves(ax: Axes, curves: Mapping[str, Numbers]) -> Axes:
    """Draw the loss of each step, one curve a way to train.

    `curves` is name -> losses.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> loss_curves(ax, {"SGD": [2.0, 1.5], "Adam": [2.0, 1.0]}).get_ylabel()
    'loss'
    """
    for index, (name, values) in enumerate(curves.items()):
        ax.plot(values, label=name, **_line(index))
    return _labelled(ax, "step", "loss")


def peak_over_batch(
    ax: Axes,
    sizes: Numbers,
    peaks: Numbers,
    line: tuple[Numbers, Numbers],
    *,
    budget: float,
    unit: str,
) -> Axes:
    """Draw measured peaks over the size of a micro-batch, the line fitted to them, and the budget.

    `line` is (sizes, peaks) of the line's ends. Peaks and `budget` are in `unit`.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> line = ([0, 2], [2.0, 4.0])
    >>> peak_over_batch(ax, [1, 2], [3.0, 4.0], line, budget=5, unit="MiB").get_xlabel()
    'micro-batch (samples)'
    """
    ax.plot(sizes, peaks, "o", color=_COLOURS[1], markersize=7, label="measured")
    ax.plot(*line, label="fitted line", **_line(0))
    ax.axhline(budget, color="black", linewidth=1.5, linestyle=":", label="budget")
    ax.set_ylim(bottom=0)
    return _labelled(ax, "micro-batch (samples)", f"peak memory ({unit})")


def time_per_sample(ax: Axes, sizes: Numbers, milliseconds: Numbers) -> Axes:
    """Draw the time that one sample takes over the size of a micro-batch, in powers of two.

    >>> from matplotlib.figure import Figure
    >>> time_per_sample(Figure().add_subplot(), [1, 2], [8.0, 5.0]).get_ylabel()
    'time per sample (ms)'
    """
    ax.plot(sizes, milliseconds, marker="o", label="measured", **_line(0))
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(sizes), [f"{size:g}" for size in sizes])
    ax.set_ylim(0, 1.1 * max(milliseconds))
    return _labelled(ax, "micro-batch (samples)", "time per sample (ms)")


def gradient_errors(ax: Axes, errors: Mapping[str, float]) -> Axes:
    """Draw a lying bar on a logarithmic axis for each relative error, with its size at its end.

    `errors` is name -> error, above 0, the first on top and in a colour of its own.

    >>> from matplotlib.figure import Figure
    >>> gradient_errors(Figure().add_subplot(), {"right": 1e-16, "wrong": 3.0}).get_xscale()
    'log'
    """
    colours = [_COLOURS[min(index, 1)] for index in range(len(errors))]
    ax.barh(list(errors), list(errors.values()), color=colours)
    for name, size in errors.items():
        ax.annotate(
            f"{size:.2g}",
            (size, name),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=_TICK_SIZE,
        )
    ax.set_xscale("log")
    ax.set_xlim(1e-18, 1e3)
    ax.invert_yaxis()
    ax.set_xlabel("length of the difference / length of the true gradient", fontsize=_LABEL_SIZE)
    ax.tick_params(labelsize=_TICK_SIZE)
    ax.set_axisbelow(True)
    ax.grid(alpha=0.3, axis="x")
    return ax


def gantt(
    ax: Axes, lanes: Mapping[str, Sequence[tuple[str, str, float, float]]], *, unit: str
) -> Axes:
    """Draw what ran when: one lane for each thing that does one job at a time.

    `lanes` is name -> bars, the first at the top. A bar is (kind, text, start, end) with times in
    `unit`; bars of one kind have one colour and hatch, and `text` is written in them.

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
                facecolors=_COLOURS[index % len(_COLOURS)] + "90",  # so that text on it is read
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
                fontsize=_TICK_SIZE,
                bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
            )
    ax.set_ylim(len(lanes) - 0.4, -0.6)
    _labelled(ax, f"time ({unit})", "runs on")
    ax.set_yticks(range(len(lanes)), list(lanes), fontsize=_LABEL_SIZE)
    ax.set_xlim(left=0)
    ax.grid(visible=False, axis="y")
    return ax


def break_even(
    ax: Axes,
    intensities: Numbers,
    curves: Mapping[str, Numbers],
    links: Mapping[str, float],
) -> Axes:
    """Draw which bandwidth makes a swap free, over a stage's arithmetic intensity.

    `curves` is name -> GB/s, one for each of `intensities` (operations a saved byte). `links` is
    name -> GB/s of links there are, drawn as horizontal lines. Both axes are logarithmic.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> break_even(ax, [1e3, 1e4], {"A100": [312.0, 31.2]}, {"PCIe 4": 32}).get_yscale()
    'log'
    """
    ax.set_xscale("log")
    ax.set_yscale("log")
    for index, (name, values) in enumerate(curves.items()):
        ax.plot(intensities, values, label=name, **_line(index))
    for name, speed in links.items():
        ax.axhline(speed, color="black", linewidth=1, linestyle=":")
        ax.annotate(
            name,
            (0.01, speed),  # where every curve is high
            xycoords=("axes fraction", "data"),
            xytext=(0, 3),
            textcoords="offset points",
            fontsize=_TICK_SIZE,
        )
    return _labelled(ax, "compute to hide behind (operations a saved byte)", "bandwidth (GB/s)")


def gradient_histogram(
    ax: Axes, exponents: Mapping[str, Numbers], ranges: Mapping[str, tuple[float, float]]
) -> Axes:
    """Draw how large gradients are, in powers of two, above the ranges of number formats.

    `exponents` is name -> log2 |gradient| of the nonzero ones. `ranges` is name -> (lowest,
    highest) exponent of a format, a shaded bar at the foot of the picture each.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> gradient_histogram(ax, {"now": [-20.0, -3.0]}, {"float16": (-24, 16)}).get_xlabel()
    'log2 |gradient|'
    """
    for index, (name, values) in enumerate(exponents.items()):
        ax.hist(values, bins=60, histtype="step", label=name, **_line(index))
    top = ax.get_ylim()[1]
    height = 0.1 * top
    for index, (name, (lowest, highest)) in enumerate(ranges.items()):
        colour, bottom = _COLOURS[2 + index], -(index + 1) * height
        ax.axvspan(lowest, highest, color=colour, alpha=0.1, linewidth=0)
        edges = [lowest, highest]
        ax.fill_between(
            edges, bottom, bottom + height, color=colour, alpha=0.5, linewidth=0, label=name
        )
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= top])
    ax.set_ylim(-len(ranges) * height, top)
    return _labelled(ax, "log2 |gradient|", "gradients")


def _line(index: int) -> dict[str, Any]:
    """The look of curve number `index`."""
    return {
        "color": _COLOURS[index % len(_COLOURS)],
        "linestyle": _DASHES[index % len(_DASHES)],
        "linewidth": 2.2,
    }


def _labelled(ax: Axes, x_label: str, y_label: str, columns: int | None = None) -> Axes:
    """Name both axes, add a light grid, and the legend where it can cover no curve."""
    ax.set_xlabel(x_label, fontsize=_LABEL_SIZE)
    ax.set_ylabel(y_label, fontsize=_LABEL_SIZE)
    ax.tick_params(labelsize=_TICK_SIZE)
    ax.grid(alpha=0.3)
    handles, _ = ax.get_legend_handles_labels()
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=columns or max(len(handles), 1),
        fontsize=_TICK_SIZE,
        handlelength=2.8,
        frameon=False,
    )
    return ax
