"""Figures of lab 6: Gantt charts of runs, live bytes in a budget, links that make swaps free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from peakmem.show.palette import ACTIONS
from peakmem.show.plots.style import TICK_SIZE, labelled, line_look
from peakmem.show.plots.time import break_even, gantt

__all__ = ["draw_break_even", "draw_choices", "draw_live_bytes", "draw_runs"]

_MIB = 2**20
_CHOICES = {"recompute": ACTIONS["forward"], "swap": ACTIONS["in"], "keep": "#d9d9d9"}
# GPU -> its host link in one direction (GB/s), and its 16-bit operations per second: data sheets.
_GPUS = {
    "V100, PCIe 3": (16, 125e12),
    "A100, PCIe 4": (32, 312e12),
    "H100, PCIe 5": (64, 989.4e12),
    "GH200, NVLink-C2C": (450, 989.4e12),
}


def draw_runs(runs: Mapping[str, Any], factor: float = 1.0, unit: str = "s") -> Figure:
    """Return Gantt charts of runs, one below the other, over a common time axis."""
    figure, axes = plt.subplots(
        len(runs), figsize=(9, 2.8 * len(runs)), sharex=True, squeeze=False, layout="constrained"
    )
    for (name, run), ax in zip(runs.items(), axes[:, 0], strict=True):
        gantt(ax, _lanes(run, factor), unit=unit)
        ax.set_ylabel(name)
        if ax is not axes[0, 0]:
            ax.get_legend().remove()
        if ax is not axes[-1, 0]:
            ax.set_xlabel("")
    axes[0, 0].xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[0, 0].set_xlim(0, 1.03 * factor * max(run.makespan for run in runs.values()))
    return figure


def draw_live_bytes(meters: Mapping[str, Any], budget_bytes: int) -> Figure:
    """Return a plot of bytes live above each meter's baseline, operator by operator, and a budget.

    Swapping adds operators, so each curve runs over the share of its own operators.
    """
    figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
    for index, (name, meter) in enumerate(meters.items()):
        levels = [(live - meter.baseline_bytes) / _MIB for _, live in meter.timeline]
        share = [100 * i / (len(levels) - 1) for i in range(len(levels))]
        ax.plot(share, levels, label=name, **line_look(index))
    ax.axhline(budget_bytes / _MIB, color="black", linestyle=":", linewidth=1.5, label="budget")
    ax.set_ylim(bottom=0)
    labelled(ax, "operators run (percent of all)", "live in addition to x and weights (MiB)")
    return figure


def draw_break_even(link_bytes_per_s: float, flops_per_s: float, layer_intensity: float) -> Figure:
    """Return a plot of the link that makes a swap free, over intensity, for GPUs and this machine.

    A line marks `layer_intensity`, the operations per saved byte of one layer.
    """
    intensities = [10 ** (1 + i / 10) for i in range(41)]
    peaks = {"V100": 125e12, "A100": 312e12, "H100": 989.4e12, "this machine": flops_per_s}
    curves = {name: [2 * peak / x / 1e9 for x in intensities] for name, peak in peaks.items()}
    figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    break_even(ax, intensities, curves, {"PCIe 3": 16, "PCIe 5": 64, "NVLink-C2C": 450})
    ax.axvline(layer_intensity, color="black", linewidth=1, linestyle="--")
    marks: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "fontsize": 11}
    where = ("data", "axes fraction")
    ax.annotate("behind 1 layer", (layer_intensity, 0.98), xycoords=where, va="top", **marks)
    point = (2 * flops_per_s / link_bytes_per_s, link_bytes_per_s / 1e9)
    ax.plot(*point, marker="o", color="black")
    ax.annotate("its own link", point, **(marks | {"xytext": (8, 4)}))
    return figure


def draw_choices(
    links: Sequence[float], speeds: Sequence[float], choices: Sequence[Sequence[str]]
) -> Figure:
    """Return a map of the choice at each link and speed, with four GPUs marked.

    `links` are in GB/s, `speeds` in operations per second; `choices` has a row for each speed.
    Raises ValueError if a choice is unknown.
    """
    names = list(_CHOICES)
    unknown = {choice for row in choices for choice in row} - set(names)
    if unknown:
        raise ValueError(
            f"unknown choice {sorted(map(str, unknown))[0]!r}; use one of {', '.join(names)}"
        )
    figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
    codes = [[names.index(choice) for choice in row] for row in choices]
    colours = ListedColormap(list(_CHOICES.values()))
    teras = [speed / 1e12 for speed in speeds]
    ax.pcolormesh(links, teras, codes, cmap=colours, vmin=0, vmax=len(names) - 1, shading="nearest")
    ax.set(xscale="log", yscale="log")
    for name, (link, speed) in _GPUS.items():
        ax.plot(link, speed / 1e12, "o", color="black")
        beside: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "top"}
        ax.annotate(name, (link, speed / 1e12), (-6, -5), fontsize=TICK_SIZE, **beside)
    for name in (name for name in names if any(name in row for row in choices)):
        ax.fill_between([], [], color=_CHOICES[name], label=name)
    labelled(ax, "link (GB/s)", "device (Tflop/s)").grid(visible=False)
    return figure


def _lanes(run: Any, factor: float) -> dict[str, list[tuple[str, str, float, float]]]:
    """Return a run's lanes for `gantt`, with times multiplied by `factor`."""
    rows = {"compute": run.steps, "link": run.copies}
    return {
        name: [(s.kind, str(s.stage), factor * s.start, factor * s.end) for s in spans]
        for name, spans in rows.items()
    }
