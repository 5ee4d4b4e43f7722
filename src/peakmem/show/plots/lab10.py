"""Figures of lab 10: attention's memory over the sequence, a roofline, and time by module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from peakmem.show.plots.style import LABEL_SIZE, SERIES, TICK_SIZE, Numbers, labelled, line_look

__all__ = ["draw_lengths", "draw_module_times", "draw_roofline"]

_MARKERS = "osD^vP*X"


def draw_lengths(lengths: Sequence[int], panels: Mapping[str, Mapping[str, Numbers]]) -> Figure:
    """Return a plot for each of `panels`: MiB over the sequence length, one curve for each name.

    Both axes are logarithmic, so that powers of the length are straight lines.
    """
    figure, axes = plt.subplots(1, len(panels), figsize=(11, 4.4), layout="constrained")
    for ax, (title, curves) in zip(axes, panels.items(), strict=True):
        for index, (name, values) in enumerate(curves.items()):
            ax.loglog(lengths, values, label=name, marker=_MARKERS[index], **line_look(index))
        ax.set_xticks(lengths, [f"{length}" for length in lengths])
        ax.minorticks_off()
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        labelled(ax, f"sequence length (tokens)\n{title}", "peak above q, k, v (MiB)")
    return figure


def draw_roofline(
    operations: Mapping[str, tuple[float, float]], accelerator: Any, rate: float
) -> Figure:
    """Return a roofline plot of operations, name -> (flops, bytes), on an accelerator.

    `rate` is the accelerator's flops per second. A point's height is the most it can reach.
    """
    figure, ax = plt.subplots(figsize=(8, 4.8), layout="constrained")
    bandwidth = accelerator.bandwidth_bytes_per_s
    ridge = rate / bandwidth
    ends = [ridge / 2000, ridge, ridge * 100]
    ax.loglog(ends, [min(rate, x * bandwidth) / 1e12 for x in ends], color="black", linewidth=2)
    ax.axvline(ridge, color="black", linewidth=1, linestyle=":")
    _note(ax, f"ridge: {ridge:.0f} flops per byte", ridge, min(rate, bandwidth * ends[0]) / 1e12)
    for index, (name, (flops, traffic)) in enumerate(operations.items()):
        intensity = flops / traffic
        reached = min(rate, intensity * bandwidth) / 1e12
        colour, marker = SERIES[index % len(SERIES)], _MARKERS[index % len(_MARKERS)]
        ax.scatter([intensity], [reached], 100, c=colour, marker=marker, label=name, zorder=3)
    labelled(ax, "intensity (flops per byte)", "attainable rate (Tflop/s)", columns=3)
    return figure


def _note(ax: Axes, text: str, x: float, y: float) -> None:
    ax.annotate(text, (x, y), xytext=(6, 4), textcoords="offset points", fontsize=TICK_SIZE)


def draw_module_times(milliseconds: Mapping[str, float]) -> Figure:
    """Return a horizontal bar for each kind of module, the longest on top."""
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    names = sorted(milliseconds, key=lambda name: milliseconds[name])
    total = sum(milliseconds.values())
    bars = ax.barh(names, [milliseconds[name] for name in names], color=SERIES[0])
    shares = [f" {milliseconds[name] / total:.0%}" for name in names]
    ax.bar_label(bars, shares, fontsize=TICK_SIZE)
    ax.set_xlabel("own forward, all layers (ms)", fontsize=LABEL_SIZE)
    ax.tick_params(labelsize=TICK_SIZE)
    ax.set_xlim(0, 1.12 * max(milliseconds.values()))
    ax.set_axisbelow(True)
    ax.grid(alpha=0.3, axis="x")
    return figure
