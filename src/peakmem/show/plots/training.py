"""Plots of training: losses, errors of gradients, and sizes of gradients."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from peakmem.show.plots.style import LABEL_SIZE, SERIES, TICK_SIZE, Numbers, labelled, line_look

__all__ = [
    "gradient_errors",
    "gradient_histogram",
    "loss_curves",
]


def loss_curves(ax: Axes, curves: Mapping[str, Numbers]) -> Axes:
    """Draw the loss of each step, one curve for each way to train.

    `curves` is name -> losses.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> loss_curves(ax, {"SGD": [2.0, 1.5], "Adam": [2.0, 1.0]}).get_ylabel()
    'loss'
    """
    for index, (name, values) in enumerate(curves.items()):
        ax.plot(values, label=name, **line_look(index))
    return labelled(ax, "step", "loss")


def gradient_errors(ax: Axes, errors: Mapping[str, float]) -> Axes:
    """Draw relative errors as labelled horizontal bars on a logarithmic axis.

    `errors` is name -> error, above 0; the first is on top and has its own colour.

    >>> from matplotlib.figure import Figure
    >>> gradient_errors(Figure().add_subplot(), {"right": 1e-16, "wrong": 3.0}).get_xscale()
    'log'
    """
    colours = [SERIES[min(index, 1)] for index in range(len(errors))]
    ax.barh(list(errors), list(errors.values()), color=colours)
    for name, size in errors.items():
        ax.annotate(
            f"{size:.2g}",
            (size, name),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=TICK_SIZE,
        )
    ax.set_xscale("log")
    ax.set_xlim(1e-18, 1e3)
    ax.invert_yaxis()
    ax.set_xlabel("length of the difference / length of the true gradient", fontsize=LABEL_SIZE)
    ax.tick_params(labelsize=TICK_SIZE)
    ax.set_axisbelow(True)
    ax.grid(alpha=0.3, axis="x")
    return ax


def gradient_histogram(
    ax: Axes, exponents: Mapping[str, Numbers], ranges: Mapping[str, tuple[float, float]]
) -> Axes:
    """Draw histograms of gradients' sizes, in powers of two, above the ranges of number formats.

    `exponents` is name -> `log2(abs(gradient))` of nonzero gradients. `ranges` is name -> (lowest,
    highest) exponent of a format; each is a shaded bar at the foot of the plot.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> gradient_histogram(ax, {"now": [-20.0, -3.0]}, {"float16": (-24, 16)}).get_ylabel()
    'number of gradients'
    """
    for index, (name, values) in enumerate(exponents.items()):
        ax.hist(values, bins=60, histtype="step", label=name, **line_look(index))
    top = ax.get_ylim()[1]
    height = 0.1 * top
    for index, (name, (lowest, highest)) in enumerate(ranges.items()):
        colour, bottom = SERIES[2 + index], -(index + 1) * height
        ax.axvspan(lowest, highest, color=colour, alpha=0.1, linewidth=0)
        edges = [lowest, highest]
        ax.fill_between(
            edges, bottom, bottom + height, color=colour, alpha=0.5, linewidth=0, label=name
        )
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= top])
    ax.set_ylim(-len(ranges) * height, top)
    return labelled(ax, r"$\log_2$ |gradient|", "number of gradients")
