"""Lab 3's leak: training in two stages, each with its own optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from peakmem.probes import as_sent
from peakmem.probes.leak import leaking

__all__ = ["Momentum", "find_the_leak", "parameter_bytes", "staged_training"]


class Momentum:
    """SGD with momentum, whose first step makes a velocity as large as each parameter."""

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        self.params = list(params)
        self.lr = lr
        self.velocity: dict[int, Tensor] = {}

    @torch.no_grad()
    def step(self) -> None:
        """Move each parameter that has a gradient by lr times its velocity."""
        for i, param in enumerate(self.params):
            if param.grad is None:
                continue
            if i not in self.velocity:
                self.velocity[i] = torch.zeros_like(param)
            param.sub_(self.velocity[i].mul_(0.9).add_(param.grad), alpha=self.lr)

    def zero_grad(self) -> None:
        """Free all gradients."""
        for param in self.params:
            param.grad = None


def staged_training(
    function: Callable[..., Any], width: int, n_layers: int, n_batches: int, seed: int
) -> dict[str, Any]:
    """Call `function(model, make_optimizer, batches)` on a perceptron, and report the results.

    `make_optimizer(lr)` makes a `Momentum` for all parameters. Returns the `losses` that the
    function returned, and the sum of each weight afterwards.
    """
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for _ in range(n_layers):
        layers += [nn.Linear(width, width, bias=False), nn.Tanh()]
    model = nn.Sequential(*layers[:-1])
    batches = [(torch.randn(4, width), torch.randn(4, width)) for _ in range(n_batches)]
    losses = function(model, lambda lr: Momentum(model.parameters(), lr), batches)
    sums = [param.sum().item() for param in model.parameters()]
    return {"losses": as_sent(list(map(_detached, losses))), "weights": sums}


def _detached(loss: Any) -> Any:
    return loss.detach() if isinstance(loss, Tensor) else loss


def parameter_bytes(width: int, n_layers: int) -> int:
    """Return P, the bytes of the perceptron's parameters."""
    return 4 * n_layers * width**2


find_the_leak = leaking(staged_training, "train_in_two_stages", n_batches=2)
