"""Lab 4's sliders: the peak over the segment length, by the student's own function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from peakmem.show.explore import explore

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["segment_sliders"]


def segment_sliders(peak_activations: Callable[..., float]) -> Any:
    """Return sliders for a chain's layers and what each saves, and its peak by your function.

    `peak_activations(n_layers, segment_length, saved)` is exercise 4.3's.
    """

    def draw(layers: int, saved_per_layer: int) -> tuple[Figure, str]:
        import matplotlib.pyplot as plt

        from peakmem.show import plots

        lengths = range(1, layers + 1)
        peaks = [peak_activations(layers, length, saved_per_layer) for length in lengths]
        least = min(peaks)
        best = lengths[peaks.index(least)]
        figure, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
        plots.peak_over_segments(ax, lengths, {"your peak_activations": peaks})
        ticks = [length for length in (1, 2, 4, 8, 16, 32, 64) if 1.3 * length < layers]
        ax.set_xticks([*ticks, layers], [f"{tick}" for tick in (*ticks, layers)])
        ax.plot([best], [least], "o", ms=14, mfc="none", mec="black", label=f"least, at {best}")
        ax.set(yscale="log", ylim=(0.7 * least, 1.4 * max(peaks)))  # so that the bottom is seen
        ax.legend()
        said = f"{layers} layers: {least:g} units with segments of {best}, {peaks[-1]:g} with all kept"
        ax.set_title(said)
        return figure, f"Peak over segment length. {said}."

    return explore(draw, layers=[8, 16, 24, 36, 48, 64, 96], saved_per_layer=[1, 2, 4, 6, 10, 17, 34])
