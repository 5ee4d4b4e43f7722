"""Figures of lab 8: a rank's bytes by stage, traffic over ranks, and a rank's memory over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from peakmem.show.palette import INK, colours_of
from peakmem.show.plots.style import TICK_SIZE, Numbers, labelled, line_look

__all__ = ["draw_rank_memory", "draw_stages", "draw_traffic"]

_MARKERS = "osD^"


def draw_stages(
    stages: Mapping[int, Mapping[str, float]],
    unit: str,
    *,
    metered: Mapping[int, float] | None = None,
    most: tuple[str, float] | None = None,
) -> Figure:
    """Return a stacked bar for each stage of ZeRO: a rank's memory, part by part.

    `metered` adds marks for measured stages, and `most` a named line such as a GPU's memory. All
    values are in `unit`.
    """
    figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    names = [f"stage {stage}" for stage in stages]
    parts = list(next(iter(stages.values())))
    for part, colour in colours_of(parts).items():
        below = [sum(list(held.values())[: parts.index(part)]) for held in stages.values()]
        ax.bar(
            names, [held[part] for held in stages.values()], 0.6, below, label=part, color=colour
        )
    ax.set_axisbelow(True)
    for place, held in enumerate(stages.values()):
        total = sum(held.values())
        ax.annotate(
            f"{total:.3g}",
            (place, total),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=TICK_SIZE,
        )
    if metered:
        places = [list(stages).index(stage) for stage in metered]
        ax.scatter(
            [place + 0.36 for place in places],
            list(metered.values()),
            90,
            marker="<",
            color=INK,
            label="metered",
            zorder=3,
        )
    if most:
        ax.axhline(most[1], color=INK, linestyle="--", linewidth=1.5, label=most[0])
    top = max(sum(held.values()) for held in stages.values())
    ax.set_ylim(0, 1.12 * max(top, most[1] if most else 0))
    labelled(ax, "", f"held by a rank ({unit})")
    return figure


def draw_traffic(
    worlds: Sequence[int],
    curves: Mapping[str, Numbers],
    metered: Mapping[str, Mapping[int, float]],
) -> Figure:
    """Return a plot of a rank's traffic, in multiples of x, over the number of ranks.

    Marks are metered values.
    """
    figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for index, (name, values) in enumerate(curves.items()):
        look = line_look(index)
        ax.plot(worlds, values, label=name, **look)
        found = metered.get(name, {})
        marks = {"marker": _MARKERS[index], "color": look["color"], "zorder": 3}
        ax.scatter(list(found), list(found.values()), 80, **marks)
    ax.set_xticks(list(worlds))
    ax.set_ylim(0)
    labelled(ax, "ranks (marks: metered)", "most sent by a rank (times x)")
    return figure


def draw_rank_memory(timelines: Mapping[str, Numbers]) -> Figure:
    """Return a rank's live MiB over the events of a step, one curve for each way to keep layers."""
    figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for index, (name, values) in enumerate(timelines.items()):
        share = np.linspace(0, 1, len(values))
        ax.plot(share, values, label=name, **line_look(index))
    ax.set_xlim(0, 1)
    ax.set_ylim(0)
    labelled(ax, "share of the step's operations", "live in one rank (MiB)")
    return figure
