"""What lab 7's notebook calls: its model, the runs it compares with, and its slider."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from peakmem.show.explore import explore

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor, nn

__all__ = ["autocast_keeps", "language_model", "scale_slider", "train_without_masters"]


def language_model(parts: int, factor: float = 1.0) -> nn.Module:
    """Return a small GPT whose loss is one of `parts` shares of a huge batch's mean.

    `model(tokens, targets)` is that share, worked out in float32 and multiplied by `factor`;
    `model.gpt(tokens)` gives the logits. The weights are the same ones each time.
    """
    import torch  # here, so that the other labs' notebooks don't load it
    from torch.nn import functional as F

    from peakmem.measure.reference_models import GPT
    from peakmem.specs.models import ModelShape

    class LanguageModel(torch.nn.Module):
        """A GPT and its loss, of tokens and targets (batch, length)."""

        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            shape = ModelShape("tiny", n_layers=2, d_model=32, n_heads=2, vocab=32, context=16)
            self.gpt = GPT(shape)
            for module in self.modules():
                if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
                    torch.nn.init.normal_(module.weight, std=0.3)

        def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
            logits = self.gpt(tokens).float()  # (batch, length, vocab)
            mean = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
            return mean / parts * factor

    return LanguageModel()


def train_without_masters(
    model: nn.Module, batch: tuple[Tensor, Tensor], steps: int, scale: float, lr: float
) -> list[float]:
    """Return the losses of SGD in float16, weights included; `lr` applies to gradients as given."""
    import torch

    model = model.half()
    losses = []
    for _ in range(steps):
        model.zero_grad()
        loss = model(*batch)
        losses.append(loss.item())
        (loss * scale).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                gradient = parameter.grad
                if gradient is not None:
                    parameter.copy_(parameter.float() - lr * (gradient.float() / scale))
    return losses


def autocast_keeps(batch: int, precision: str, device: str) -> int:
    """Return the bytes that the forward of eight 512 x 512 layers leaves behind.

    `precision` is float32, all bfloat16, or autocast.
    """
    import torch
    from torch import nn

    from peakmem.measure.meter import measure_call

    layers = [nn.Linear(512, 512, bias=False) for _ in range(8)]
    model = nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))
    dtype = torch.bfloat16 if precision == "all bfloat16" else torch.float32
    model, x = model.to(device, dtype), torch.randn(batch, 512, device=device, dtype=dtype)

    def forward(x: Tensor) -> Any:
        with torch.autocast(device, torch.bfloat16, enabled=precision == "autocast"):
            return model(x)

    found = measure_call(forward, x, track=[model], warm_up=1)
    return found.live_after_bytes - found.live_before_bytes


def scale_slider(flushed_fraction: Callable[..., float], grads: Sequence[Tensor]) -> Any:
    """Return a slider for the scale, and the scaled gradients in float16's range.

    `flushed_fraction(grads, dtype, scale)` is exercise 7.1's.
    """

    def draw(scale: str) -> tuple[Figure, str]:
        import matplotlib.pyplot as plt
        import torch

        from peakmem.show import plots

        exponent = int(scale.removeprefix("2^"))
        values = torch.cat([grad.flatten() for grad in grads]).double() * 2.0**exponent
        sizes = values[values != 0].abs()
        lost = flushed_fraction(grads, "float16", 2.0**exponent)
        too_large = (sizes >= 65520).double().mean().item()
        figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
        ranges = {"float16": (-25.0, 16.0)}
        plots.gradient_histogram(axes, {"scaled gradients": sizes.log2().numpy()}, ranges)
        axes.set_xlim(-50, 40)
        said = f"scale {scale}: {lost:.1%} flushed to 0, {too_large:.1%} become inf"
        axes.legend(loc="upper right")
        axes.set_title(said.replace(scale, f"$2^{{{exponent}}}$"))
        return figure, f"Histogram of the gradients' sizes next to float16's range; {said}."

    return explore(draw, scale=[f"2^{exponent}" for exponent in range(-6, 31)])
