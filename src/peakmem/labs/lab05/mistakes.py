"""The classic mistakes in accumulation, and how far each moves the gradient from the right one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["gradient_errors", "parameter_errors"]

Backward = Callable[[nn.Sequential], object]

_MICRO_BATCH = 5


def _data() -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, sorted targets, and labels of which each micro-batch counts fewer: 5, 4, 3, 2, 0."""
    torch.manual_seed(0)
    x = torch.randn(23, 4, dtype=torch.float64)  # 5 micro-batches: 5, 5, 5, 5 and 3
    y = torch.linspace(0, 3, 23, dtype=torch.float64)[:, None] + torch.randn(23, 3).double()
    labels = torch.randint(3, (23,))
    labels[torch.arange(23) % 5 < torch.arange(23) // 5] = -100
    return x, y, labels


def _network(*middle: nn.Module) -> nn.Sequential:
    """Return a small float64 network, always with the same weights."""
    torch.manual_seed(1)
    layers = [nn.Linear(4, 16), *middle, nn.Tanh(), nn.Linear(16, 3)]
    return nn.Sequential(*layers).double()


def _gradient(backward: Backward, *middle: nn.Module) -> Tensor:
    """The gradient that `backward(model)` leaves in a fresh network, as one vector."""
    model = _network(*middle)
    backward(model)
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def _by_pieces(
    x: Tensor, y: Tensor, weight: Callable[[int], float], after: Backward | None = None
) -> Backward:
    """Accumulate micro-batch by micro-batch, each loss times `weight(size)`, and `after` each."""

    def backward(model: nn.Sequential) -> None:
        for a, b in zip(torch.split(x, _MICRO_BATCH), torch.split(y, _MICRO_BATCH), strict=True):
            (weight(len(a)) * F.mse_loss(model(a), b)).backward()  # type: ignore[no-untyped-call]
            if after is not None:
                after(model)

    return backward


def _over_tokens(x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of the mean of the micro-batches' means, and of the mean over all tokens."""

    def mean_of_means(model: nn.Sequential) -> None:
        pairs = zip(torch.split(x, _MICRO_BATCH), torch.split(labels, _MICRO_BATCH), strict=True)
        for a, b in pairs:
            if bool((b != -100).any()):
                (F.cross_entropy(model(a), b) / 4).backward()  # type: ignore[no-untyped-call]

    def over_tokens(model: nn.Sequential) -> None:
        F.cross_entropy(model(x), labels).backward()  # type: ignore[no-untyped-call]

    return _gradient(mean_of_means), _gradient(over_tokens)


def gradient_errors(accumulate_gradients: Callable[..., Any]) -> dict[str, float]:
    """Return the relative error of the student's gradient, and of each mistake's, by name."""
    x, y, labels = _data()
    count, samples = -(-len(x) // _MICRO_BATCH), len(x)

    def student(model: nn.Sequential) -> None:
        accumulate_gradients(model, F.mse_loss, x, y, _MICRO_BATCH)

    def whole(model: nn.Sequential) -> None:
        F.mse_loss(model(x), y).backward()  # type: ignore[no-untyped-call]

    full = _gradient(whole)

    def clip(model: nn.Sequential) -> None:
        nn.utils.clip_grad_norm_(model.parameters(), 0.5 * full.norm().item())

    def clipped(model: nn.Sequential) -> None:
        whole(model)
        clip(model)

    def share(size: int) -> float:
        return size / samples

    divided = _by_pieces(x, y, share)
    compared = {
        "yours": (_gradient(student), full),
        "no division": (_gradient(_by_pieces(x, y, lambda size: 1.0)), full),
        "short last one counts fully": (_gradient(_by_pieces(x, y, lambda size: 1 / count)), full),
        "mean of means over tokens": _over_tokens(x, labels),
        "each micro-batch clipped": (_gradient(_by_pieces(x, y, share, clip)), _gradient(clipped)),
        "batch norm": (
            _gradient(divided, nn.BatchNorm1d(16)),
            _gradient(whole, nn.BatchNorm1d(16)),
        ),
    }
    return {
        name: float((got - expected).norm() / expected.norm())
        for name, (got, expected) in compared.items()
    }


def parameter_errors() -> dict[str, float]:
    """Return how far a parameter is off after a step without the division, by optimizer."""
    x, y, _ = _data()
    errors = {}
    for make in (torch.optim.SGD, torch.optim.Adam):
        moved = []
        for weight in (1 / 4, 1.0):
            model = _network()
            optimizer = make(model.parameters(), lr=0.1)
            for a, b in zip(torch.split(x[:20], 5), torch.split(y[:20], 5), strict=True):
                (weight * F.mse_loss(model(a), b)).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            moved.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
        errors[make.__name__] = float((moved[0] - moved[1]).abs().max())
    return errors
