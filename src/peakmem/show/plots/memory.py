"""Plots of memory: by owner, over time, and its peak over a batch, a plan or a sequence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from peakmem.core.units import GB, MB
from peakmem.show.palette import colours_of
from peakmem.show.plots.style import SERIES, TICK_SIZE, Numbers, labelled, line_look
from peakmem.specs.ledger import Ledger

__all__ = [
    "live_by_owner",
    "live_timelines",
    "memory_over_length",
    "peak_over_batch",
    "peak_over_segments",
    "stacked_bars",
    "time_against_memory",
]


def memory_over_length(
    ax: Axes,
    lengths: Numbers,
    curves: Mapping[str, Numbers],
    *,
    limit_gb: float | None = None,
    limit_name: str = "budget",
) -> Axes:
    """Draw memory in GB over the sequence length, one curve for each way to train.

    `curves` is name -> GB, one value for each of `lengths`. `limit_gb` draws the available memory
    as a line named `limit_name`.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> memory_over_length(ax, [512, 1024], {"flash": [1.0, 2.0]}, limit_gb=16).get_ylabel()
    'memory (GB)'
    """
    for index, (name, values) in enumerate(curves.items()):
        ax.plot(lengths, values, label=name, **line_look(index))
    if limit_gb is not None:
        ax.axhline(limit_gb, color="black", linewidth=1, linestyle=":")
        ax.annotate(
            limit_name,
            (0.02, limit_gb),
            xycoords=("axes fraction", "data"),
            xytext=(0, 4),
            textcoords="offset points",
            fontsize=TICK_SIZE,
        )
    return labelled(ax, "sequence length (tokens)", "memory (GB)")


def stacked_bars(
    ax: Axes,
    bars: Mapping[str, Mapping[str, float]],
    *,
    label: str,
    limit: float | None = None,
    limit_name: str = "budget",
) -> Axes:
    """Draw a horizontal bar for each name, stacked from its parts and labelled with its sum.

    `bars` is name -> part -> size, the first on top; a missing part has size 0. `label` names the
    axis with its unit. Owners of memory have the colours of `palette`. `limit` draws a line named
    `limit_name`, which bars may cross.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> sizes = {"fp32": {"weights": 4, "gradients": 4}, "bf16": {"weights": 2, "gradients": 2}}
    >>> stacked_bars(ax, sizes, label="bytes per parameter", limit=6).get_xlabel()
    'bytes per parameter'
    """
    colours = colours_of(part for bar in bars.values() for part in bar)
    left = [0.0] * len(bars)
    for part, colour in colours.items():
        sizes = [bar.get(part, 0.0) for bar in bars.values()]
        ax.barh(list(bars), sizes, left=left, label=part, color=colour, edgecolor="white")
        left = [start + size for start, size in zip(left, sizes, strict=True)]
    for name, end in zip(bars, left, strict=True):
        ax.annotate(
            f"{end:.3g}" if end < 1000 else f"{end:,.0f}",
            (end, name),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=TICK_SIZE,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1},
        )
    ax.set_axisbelow(True)
    ax.set_xlim(0, 1.12 * max([*left, limit or 0.0]))  # room for the sums
    ax.invert_yaxis()
    if limit is not None:
        ax.axvline(limit, color="black", linewidth=1.5, linestyle=":", label=limit_name)
    return labelled(ax, label, "", columns=3)


def live_by_owner(ax: Axes, ledger: Ledger, *, x_label: str) -> Axes:
    """Draw live memory at each event of a ledger, stacked by owner, with the peak marked.

    `x_label` names the events. The unit is MB, or GB if the peak is at least 1 GB.

    >>> from matplotlib.figure import Figure
    >>> from peakmem.specs.ledger import Event, Ledger, Tensor
    >>> weight = Tensor("weight", "parameter", (3,), "fp32", 3_000_000, 0, 1)
    >>> events = (Event("forward", "mm"), Event("forward", "add"))
    >>> ledger = Ledger(tensors=(weight,), events=events)
    >>> live_by_owner(Figure().add_subplot(), ledger, x_label="operator").get_ylabel()
    'live memory (MB)'
    """
    unit, n_bytes = ("GB", GB) if ledger.peak_bytes >= GB else ("MB", MB)
    levels = ledger.live_by_owner()
    colours = colours_of(levels)
    ax.stackplot(
        range(len(ledger.events)),
        *([n / n_bytes for n in level] for level in levels.values()),
        labels=[owner.replace("_", " ") for owner in levels],
        colors=[colours[owner] for owner in levels],
        step="post",
    )
    peak = ledger.peak_bytes / n_bytes
    name = f"peak, {peak:.3g} {unit}"
    ax.plot([ledger.peak_event], [peak], marker="v", color="black", linestyle="none", label=name)
    ax.set_xlim(0, max(1, len(ledger.events) - 1))
    ax.set_ylim(0, 1.1 * peak)
    return labelled(ax, x_label, f"live memory ({unit})", columns=4)


def live_timelines(ax: Axes, curves: Mapping[str, Numbers], *, unit: str) -> Axes:
    """Draw live memory over operators, one curve for each program, with each peak marked.

    `curves` is name -> memory after each operator, in `unit` (such as "MiB").

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> live_timelines(ax, {"training": [1.0, 3.0, 1.0]}, unit="MiB").get_ylabel()
    'live memory (MiB)'
    """
    for index, (name, values) in enumerate(curves.items()):
        line = line_look(index)
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
            fontsize=TICK_SIZE,
            color=line["color"],
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1},
        )
    ax.set_ylim(0, 1.12 * max(map(max, curves.values())))  # room for the peaks' figures
    return labelled(ax, "operators run so far", f"live memory ({unit})")


def peak_over_segments(ax: Axes, lengths: Numbers, curves: Mapping[str, Numbers]) -> Axes:
    """Draw a chain's peak over the length of its segments, one curve for each source.

    `curves` is name -> peaks in layer outputs, one for each of `lengths`. Points are marked,
    because lengths are integers; their axis is in powers of two.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> peak_over_segments(ax, [1, 2, 4], {"predicted": [5, 4, 5]}).get_xlabel()
    'layers per segment'
    """
    ax.set_xscale("log", base=2)
    for index, (name, peaks) in enumerate(curves.items()):
        ax.plot(lengths, peaks, label=name, marker="os^D"[index % 4], **line_look(index))
    ax.set_xticks(lengths, [f"{length:g}" for length in lengths])
    ax.minorticks_off()
    ax.set_ylim(bottom=0)
    return labelled(ax, "layers per segment", "peak (outputs of a layer)")


def peak_over_batch(
    ax: Axes,
    sizes: Numbers,
    peaks: Numbers,
    line: tuple[Numbers, Numbers],
    *,
    budget: float,
    unit: str,
) -> Axes:
    """Draw measured peaks over the micro-batch size, the fitted line, and the budget.

    `line` is (sizes, peaks) of the line's ends. Peaks and `budget` are in `unit`.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> line = ([0, 2], [2.0, 4.0])
    >>> peak_over_batch(ax, [1, 2], [3.0, 4.0], line, budget=5, unit="MiB").get_xlabel()
    'micro-batch (samples)'
    """
    ax.plot(sizes, peaks, "o", color=SERIES[1], markersize=7, label="measured")
    ax.plot(*line, label="fitted line", **line_look(0))
    ax.axhline(budget, color="black", linewidth=1.5, linestyle=":", label="budget")
    ax.set_ylim(bottom=0)
    return labelled(ax, "micro-batch (samples)", f"peak memory ({unit})")


def time_against_memory(
    ax: Axes, curves: Mapping[str, Sequence[tuple[float, float]]], *, unit: str
) -> Axes:
    """Draw the least time that fits each budget, one step curve for each planner.

    `curves` is name -> (budget in `unit`, time), in ascending order of budget: from that budget on,
    a plan of that time fits. Later curves are thinner and on top, so that equal curves are both
    visible.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> time_against_memory(ax, {"equal": [(8, 5.0), (12, 3.0)]}, unit="MiB").get_xlabel()
    'budget (MiB)'
    """
    most = max(budget for steps in curves.values() for budget, _ in steps)
    for index, (name, steps) in enumerate(curves.items()):
        budgets = [*(budget for budget, _ in steps), 1.05 * most]
        times = [*(time for _, time in steps), steps[-1][1]]
        width = 1.6 + 1.6 * (len(curves) - 1 - index)
        dashes = line_look(max(index - 1, 0))["linestyle"]  # solid for the two lowest curves
        look = line_look(index) | {"linestyle": dashes, "linewidth": width}
        ax.plot(budgets, times, label=name, drawstyle="steps-post", **look)
    return labelled(ax, f"budget ({unit})", "time of forward runs (units)")
