"""Plots of the labs and lectures: functions that draw data on a matplotlib Axes.

Each function draws its data on `ax` and returns `ax`; the caller makes the figure:

    fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    plots.running_sum(ax, {"exact": exact, "float16": sums}, stalls_at=32.0)

Curves differ both in colour (Okabe and Ito's palette, which is safe for colour-blind readers) and
in dashes, so that they can be told apart in grey too.
"""

from peakmem.show.plots.formats import number_line, relative_spacing, running_sum
from peakmem.show.plots.memory import (
    live_timelines,
    memory_over_length,
    peak_over_batch,
    peak_over_segments,
    stacked_bars,
    time_against_memory,
)
from peakmem.show.plots.time import break_even, gantt, time_per_sample
from peakmem.show.plots.training import gradient_errors, gradient_histogram, loss_curves

__all__ = [
    "break_even",
    "gantt",
    "gradient_errors",
    "gradient_histogram",
    "live_timelines",
    "loss_curves",
    "memory_over_length",
    "number_line",
    "peak_over_batch",
    "peak_over_segments",
    "relative_spacing",
    "running_sum",
    "stacked_bars",
    "time_against_memory",
    "time_per_sample",
]
