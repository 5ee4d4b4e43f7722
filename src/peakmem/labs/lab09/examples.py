"""Weights and activations to quantize, and a small network trained with and without rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["outlier_inputs", "rounding_losses", "weight_matrix"]


def weight_matrix() -> Tensor:
    """Return weights as trained layers have them: rows of unequal sizes, and a few large values.

    One value in 2,000 is ten times as large as it was drawn.
    """
    import torch  # here, so that the other labs' notebooks don't load it

    generator = torch.Generator().manual_seed(0)
    sizes = torch.exp(0.7 * torch.randn(256, 1, generator=generator)) / 512**0.5
    weight = sizes * torch.randn(256, 512, generator=generator)
    rare = torch.rand(256, 512, generator=generator) < 1 / 2000
    return torch.where(rare, 10 * weight, weight)


def outlier_inputs() -> Tensor:
    """Return activations in which two columns hold values some 40 times as large as the others."""
    import torch

    generator = torch.Generator().manual_seed(1)
    x = torch.randn(64, 512, generator=generator)
    x[:, [70, 300]] = 40 + 10 * torch.randn(64, 2, generator=generator)
    return x


def rounding_losses(
    quantize: Callable[[Tensor, int], Tensor], bits: int, steps: int = 600
) -> dict[str, float]:
    """Return losses of a small network in float32, rounded after training, and trained rounded.

    `quantize(weight, bits)` is exercise 9.9's; weights are kept within its range.
    """
    import torch
    from torch.nn import functional as F

    def new_net() -> tuple[nn.Linear, nn.Linear]:
        torch.manual_seed(0)
        return torch.nn.Linear(8, 64), torch.nn.Linear(64, 1)

    def loss(net: tuple[nn.Linear, nn.Linear], change: Callable[[Tensor], Tensor]) -> Tensor:
        hidden = torch.tanh(F.linear(x, 2 * change(net[0].weight), net[0].bias))
        return F.mse_loss(F.linear(hidden, change(net[1].weight), net[1].bias), y)

    def trained(change: Callable[[Tensor], Tensor]) -> tuple[nn.Linear, nn.Linear]:
        net = new_net()
        parameters: list[Any] = [p for layer in net for p in layer.parameters()]
        optimizer = torch.optim.Adam(parameters, lr=0.01, foreach=False)
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = 0.01 * (1 - step / steps)
            optimizer.zero_grad()
            loss(net, change).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        return net

    torch.manual_seed(1)
    x = torch.randn(256, 8)
    y = torch.sin(2 * x[:, :1]) + x[:, 1:2] * x[:, 2:3]
    as_it_is = trained(lambda weight: weight)
    rounded = trained(lambda weight: quantize(weight, bits))
    with torch.no_grad():
        return {
            "float32": loss(as_it_is, lambda weight: weight).item(),
            "rounded after training": loss(as_it_is, lambda w: quantize(w, bits)).item(),
            "trained rounded": loss(rounded, lambda w: quantize(w, bits)).item(),
        }
