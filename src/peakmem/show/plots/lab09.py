"""Figures of lab 9: codes among weights, errors over bits, and a model's bytes beside GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from peakmem.show.palette import INK, OWNERS
from peakmem.show.plots.style import LABEL_SIZE, SERIES, TICK_SIZE, Numbers, labelled, line_look

__all__ = ["draw_codes", "draw_errors", "draw_model_bytes"]


def draw_codes(weights: Numbers, tables: Mapping[str, Numbers]) -> Figure:
    """Return a histogram of weights, and below it the values that each table can store."""
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(8, 4.5), sharex=True, height_ratios=(3, 1), layout="constrained"
    )
    top.hist(weights, bins=80, color=OWNERS["weights"], label="weights of a block / largest")
    labelled(top, "", "number of weights")
    for row, values in enumerate(tables.values()):
        bottom.plot(values, [row] * len(values), "|", ms=16, mew=2, color=SERIES[row])
    bottom.set_yticks(range(len(tables)), list(tables), fontsize=TICK_SIZE)
    bottom.set_xlabel("value / largest of its block", fontsize=LABEL_SIZE)
    bottom.tick_params(labelsize=TICK_SIZE)
    bottom.set_ylim(-0.7, len(tables) - 0.3)
    return figure


def draw_errors(bits: Sequence[int], errors: Mapping[str, Numbers]) -> Figure:
    """Draw an output's relative error against the bits of a code, one curve for each scheme."""
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for index, (name, values) in enumerate(errors.items()):
        axes.semilogy(bits, values, marker="o", label=name, **line_look(index))
    axes.set_xticks(list(bits))
    labelled(axes, "bits of a code", "error of the output / its size")
    return figure


def draw_model_bytes(schemes: Mapping[str, float], cards: Mapping[str, float]) -> Figure:
    """Return bars of a model's weights in GB, one for each scheme, and lines for GPUs' memory."""
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    bars = axes.barh(list(schemes), list(schemes.values()), color=OWNERS["weights"])
    axes.bar_label(bars, fmt="%.2f", padding=3, fontsize=TICK_SIZE)
    axes.invert_yaxis()
    for name, gb in cards.items():
        axes.axvline(gb, color=INK, linestyle="--", linewidth=1.5)
        axes.annotate(
            name, (gb, 1.01), xycoords=("data", "axes fraction"), ha="center", fontsize=10
        )
    axes.set_xlim(0, 1.12 * max(*schemes.values(), *cards.values()))
    axes.set_xlabel("GB of weights; dashed: the memory a GPU reports", fontsize=LABEL_SIZE)
    axes.tick_params(labelsize=TICK_SIZE)
    return figure
