"""Lab 4's helpers: a checkpoint's arguments, a chain and its peak, and sliders for the peak."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from peakmem.show.explore import explore

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor, nn

    from peakmem.measure.meter import MemoryMeter

__all__ = [
    "forward_and_backward",
    "keep_arguments",
    "kept_arguments",
    "new_chain",
    "segment_sliders",
]


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


def new_chain(n_layers: int, width: int = 512, times: int = 1) -> tuple[nn.ModuleList, Tensor]:
    """Return layers and an input, `width` by `width`, on the GPU if there is one.

    A layer is tanh(x * scale), `times` times: each saves one result, which is the next one's input.
    The input and each result take 1 MiB for a width of 512.
    """
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(width))

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(times):
                x = torch.tanh(x * self.scale)
            return x

    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = nn.ModuleList(Layer() for _ in range(n_layers)).to(device)
    return layers, torch.randn(width, width, device=device, requires_grad=True)


def forward_and_backward(
    run: Callable[[nn.ModuleList, Tensor], Tensor],
    layers: nn.ModuleList,
    x: Tensor,
    extra_bytes: int | None = None,
) -> MemoryMeter:
    """Return the meter of one pass of run(layers, x), forward and backward.

    `extra_bytes` is its budget beside the layers and the input. Raises OutOfMemory if it takes
    more.
    """
    from peakmem.measure.meter import MemoryMeter

    device = x.device.type
    with MemoryMeter(device).track(layers, x) as before:
        pass
    budget = None if extra_bytes is None else before.baseline_bytes + extra_bytes
    with MemoryMeter(device, budget_bytes=budget).track(layers, x) as meter:
        run(layers, x).sum().backward()  # type: ignore[no-untyped-call]
    return meter


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
        ax.plot([best], [least], "o", ms=14, mfc="none", mec="black", label=f"smallest, at {best}")
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
