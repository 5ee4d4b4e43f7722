"""The style that all plots share: dashes, text sizes, and labels of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from matplotlib.axes import Axes

from peakmem.show.palette import SERIES

__all__ = ["LABEL_SIZE", "SERIES", "TICK_SIZE", "Numbers", "labelled", "line_look"]

DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (3, 1)), (0, (6, 1, 1, 1, 1, 1)), (0, (1, 3)))
LABEL_SIZE, TICK_SIZE = 13, 11  # points; legible at 8 inches in a notebook and on a projector

Numbers = Sequence[float] | npt.NDArray[Any]


def line_look(index: int) -> dict[str, Any]:
    """Return the line properties of curve number `index`."""
    return {
        "color": SERIES[index % len(SERIES)],
        "linestyle": DASHES[index % len(DASHES)],
        "linewidth": 2.2,
    }


def labelled(ax: Axes, x_label: str, y_label: str, columns: int | None = None) -> Axes:
    """Label both axes, add a light grid, and put the legend above the plot."""
    ax.set_xlabel(x_label, fontsize=LABEL_SIZE)
    ax.set_ylabel(y_label, fontsize=LABEL_SIZE)
    ax.tick_params(labelsize=TICK_SIZE)
    ax.grid(alpha=0.3)
    handles, _ = ax.get_legend_handles_labels()
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=columns or max(len(handles), 1),
        fontsize=TICK_SIZE,
        handlelength=2.8,
        frameon=False,
    )
    return ax
