"""Plots of the labs and lectures: data in, a matplotlib Axes in and out, no arithmetic.

Each function draws what it is given on `ax` and returns it; the caller makes the figure:

    fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    plots.running_sum(ax, {"exact": exact, "float16": sums}, stalls_at=32.0)

Curves differ in colour (the palette of Okabe and Ito, which colour-blind people can tell apart)
and in dashes as well, so that a print in grey can be read too.
"""

from peakmem.show.plots.formats import number_line, relative_spacing, running_sum
from peakmem.show.plots.memory import (
    live_timelines,
    memory_over_length,
    memory_over_time,
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
    "memory_over_time",
    "number_line",
    "peak_over_batch",
    "peak_over_segments",
    "relative_spacing",
    "running_sum",
    "stacked_bars",
    "time_against_memory",
    "time_per_sample",
]
