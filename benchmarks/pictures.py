"""Pictures of measurements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, PercentFormatter, ScalarFormatter

from benchmarks.figures import Outcome
from benchmarks.peaks import Row

__all__ = ["draw_accuracy", "draw_figures"]

_MB = 10**6
_LOOKS = {"build_ledger": ("#0072b2", "o"), "trace": ("#d55e00", "x")}


def draw_accuracy(rows: Sequence[Row], path: Path) -> None:
    """Draw predicted over measured bytes, and the distribution of the errors."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    points, spread = figure.subplots(1, 2)
    for who, (colour, marker) in _LOOKS.items():
        found = [(row.measured_bytes, row.errors()[who]) for row in rows if who in row.errors()]
        if not found:
            continue
        measured = [n / _MB for n, _ in found]
        predicted = [n * (1 + error) / _MB for n, error in found]
        label = f"{who} ({len(found)})"
        points.plot(measured, predicted, marker, color=colour, fillstyle="none", label=label)
        spread.hist(
            [error for _, error in found],
            bins=[step / 400 - 0.06125 for step in range(50)],
            histtype="step",
            color=colour,
            linewidth=1.6,
            label=label,
        )
    ends = [extreme(row.measured_bytes for row in rows) / _MB for extreme in (min, max)]
    points.plot(ends, ends, color="#767676", linewidth=1, zorder=0, label="equal")
    points.set(
        xscale="log",
        yscale="log",
        xlabel="measured peak (MB)",
        ylabel="predicted peak (MB)",
        title="Peaks of training steps",
    )
    for axis in (points.xaxis, points.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(ScalarFormatter())
        axis.set_minor_formatter(NullFormatter())
    spread.axvspan(-0.01, 0.01, color="#767676", alpha=0.15, linewidth=0, label="1 %")
    spread.xaxis.set_major_formatter(PercentFormatter(1, decimals=1))
    spread.set(xlabel="predicted / measured - 1", ylabel="configurations", title="Relative errors")
    for axes in (points, spread):
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def draw_figures(outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw a bar chart for each measured unit of speed."""
    units: dict[str, list[tuple[str, float]]] = {}
    for outcome in outcomes:
        for found in outcome.figures:
            if found.unit in ("TFLOP/s", "GB/s"):
                units.setdefault(found.unit, []).append((found.name, found.value))
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    for number, (unit, bars) in enumerate(units.items(), 1):
        axes = figure.add_subplot(1, len(units), number)
        axes.barh([name for name, _ in bars], [value for _, value in bars], color="#0072b2")
        axes.invert_yaxis()
        axes.set(xlabel=unit)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
