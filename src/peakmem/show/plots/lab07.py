"""Figure of lab 7: losses in several formats, and the loss scale over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from peakmem.show.plots.style import labelled, line_look

__all__ = ["draw_scaler"]


def draw_scaler(losses: Mapping[str, Sequence[float]], scales: Sequence[float]) -> Figure:
    """Return plots of the losses of up to four runs and of the loss scale over time."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for index, (name, curve) in enumerate(losses.items()):
        left.semilogy(curve, label=name, **line_look(index))
    left.set_ylim(1e-12, None)
    labelled(left, "step", "loss", columns=2)
    right.semilogy(scales, base=2, label="what your scaler found", **line_look(0))
    labelled(right, "step", "loss scale")
    return figure
