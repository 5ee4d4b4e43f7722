"""Figure of lab 7: losses in several formats, and the loss scale over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

__all__ = ["draw_scaler"]


def draw_scaler(losses: Mapping[str, Sequence[float]], scales: Sequence[float]) -> Figure:
    """Return plots of the losses of up to four runs and of the loss scale over time."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    looks = (("#000000", "-"), ("#009E73", "-."), ("#D55E00", "--"), ("#0072B2", "-"))
    for (name, curve), (colour, dashes) in zip(losses.items(), looks, strict=False):
        left.semilogy(curve, color=colour, linestyle=dashes, label=name)
    left.set(xlabel="step", ylabel="loss", title="Loss", ylim=(1e-12, None))
    left.legend()
    right.semilogy(scales, base=2, color="#0072B2")
    right.set(xlabel="step", ylabel="scale", title="What your scaler found")
    return figure
