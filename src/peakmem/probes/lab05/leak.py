"""Lab 5's leak: the loss of validation data, micro-batch by micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peakmem.probes import Namespace, as_sent
from peakmem.probes.leak import measured_run

__all__ = ["find_the_leak", "most_bytes", "validated"]


class OnlyInTraining(nn.Module):
    """Acts only in training mode, like dropout, but deterministically."""

    def forward(self, x: Tensor) -> Tensor:
        return 1.5 * x if self.training else x


def validated(
    function: Callable[..., Any],
    samples: int,
    micro_batch: int,
    length: int,
    width: int,
    n_layers: int,
    seed: int,
    training: bool = False,
) -> dict[str, Any]:
    """Call `function(model, loss_fn, inputs, targets, micro_batch)`, and report the results.

    The model is a perceptron whose gradients are ones. Returns the `loss` that the function
    returned, whether the `gradients` are "there", "changed", "gone", or switched "off" for later
    calls, and whether the model is in `training` mode.
    """
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for _ in range(n_layers):
        layers += [nn.Linear(width, width, bias=False), nn.Tanh()]
    model = nn.Sequential(*layers[:-1], OnlyInTraining()).train(training)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    inputs, targets = torch.randn(2, samples, length, width).unbind()
    loss = function(model, _distance, inputs, targets, micro_batch)
    records = torch.is_grad_enabled() and all(p.requires_grad for p in model.parameters())
    torch.set_grad_enabled(True)  # in case the function switched it off
    return {
        "loss": as_sent(loss.detach() if isinstance(loss, Tensor) else loss),
        "gradients": _gradients(model) if records else "off",
        "training": model.training,
    }


def _distance(outputs: Tensor, targets: Tensor) -> Tensor:
    """A loss function that isn't the lab's, and lacks torch's options such as `reduction`."""
    return F.l1_loss(outputs, targets)


def _gradients(model: nn.Module) -> str:
    gradients = [parameter.grad for parameter in model.parameters()]
    if any(g is None for g in gradients):
        return "gone"
    alike = all(bool((g == 1).all()) for g in gradients if g is not None)
    return "there" if alike else "changed"


def most_bytes(
    samples: int, micro_batch: int, length: int, width: int, n_layers: int, **_: Any
) -> int:
    """Return the bytes that a call may take, including data, model and gradients.

    A forward saves one output per layer; three micro-batches' outputs may be live.
    """
    data = 2 * samples * length * width
    model = 2 * n_layers * width**2
    return 4 * (data + model + 3 * n_layers * micro_batch * length * width)


def find_the_leak(student: Namespace, metered: bool = True, **sizes: Any) -> dict[str, Any]:
    """Run and measure the student's `validation_loss`."""
    warm_up = {"samples": sizes["micro_batch"]}
    return measured_run(validated, student.validation_loss, sizes, warm_up, metered=metered)
