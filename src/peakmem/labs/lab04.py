"""Lab 4's helpers: a checkpoint's arguments, and sliders for the peak over the segment length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from peakmem.show.explore import explore

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["keep_arguments", "kept_arguments", "segment_sliders"]


def keep_arguments(ctx: Any, args: Sequence[Any]) -> None:
    """Keep `args` on `ctx`, an autograd.Function's context: tensors by `save_for_backward`."""
    import torch  # here, so that drawing loads no torch

    ctx.save_for_backward(*(arg for arg in args if torch.is_tensor(arg)))
    ctx.is_tensor = [torch.is_tensor(arg) for arg in args]
    ctx.others = [arg for arg in args if not torch.is_tensor(arg)]


def kept_arguments(ctx: Any) -> list[Any]:
    """Return the arguments that `keep_arguments` kept.

    Each tensor is a new leaf: it has no graph, and requires a gradient if it did before.
    """
    leaves = (tensor.detach().requires_grad_(tensor.requires_grad) for tensor in ctx.saved_tensors)
    others = iter(ctx.others)
    return [next(leaves) if is_tensor else next(others) for is_tensor in ctx.is_tensor]


def segment_sliders(peak_activations: Callable[..., float]) -> Any:
    """Return sliders for a chain's layers and the units each saves, with the peak by your function.

    `peak_activations(n_layers, segment_length, saved)` is exercise 4.3's.
    """

    def draw(layers: int, saved_per_layer: int) -> tuple[Figure, str]:
        import matplotlib.pyplot as plt
        from matplotlib.ticker import LogLocator

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
        ax.set(yscale="log", ylim=(0.7 * least, 1.4 * max(peaks)))  # so that the bottom is visible
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
        ax.legend()
        said = (
            f"{layers} layers: {least:g} units with segments of {best}, {peaks[-1]:g} with all kept"
        )
        ax.set_title(said)
        return figure, f"Peak over segment length. {said}."

    return explore(
        draw, layers=[8, 16, 24, 36, 48, 64, 96], saved_per_layer=[1, 2, 4, 6, 10, 17, 34]
    )
