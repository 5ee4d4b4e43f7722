"""Models of lab 5's probes; the grader builds the same models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = [
    "Louder",
    "Regression",
    "large_run",
    "normed_perceptron",
    "perceptron",
    "small_model",
    "token_model",
]

Array = np.ndarray[Any, np.dtype[Any]]


def perceptron(weights: Sequence[Array]) -> nn.Sequential:
    """Return linear layers with these weights (out, in), without biases, with tanh between them."""
    layers: list[nn.Module] = []
    for weight in weights:
        layers += [nn.Linear(weight.shape[1], weight.shape[0], bias=False), nn.Tanh()]
        layers[-2].weight = nn.Parameter(torch.tensor(weight))
    return nn.Sequential(*layers[:-1])


class Louder(nn.Module):
    """Acts only in training mode, like dropout, but deterministically."""

    def forward(self, x: Tensor) -> Tensor:
        return 1.5 * x if self.training else x


def token_model(embedding: Array, head: Array) -> nn.Sequential:
    """Return a model from tokens (B, T) to logits (B, T, V)."""
    tokens = nn.Embedding(len(embedding), embedding.shape[1], _weight=torch.tensor(embedding))
    return nn.Sequential(tokens, nn.Tanh(), Louder(), *perceptron([head]))


def small_model(weights: Sequence[Array]) -> nn.Sequential:
    """Return a perceptron with a layer that depends on the training mode."""
    layers = list(perceptron(weights))
    return nn.Sequential(*layers[:2], Louder(), *layers[2:])


class Regression(nn.Module):
    """A perceptron that returns the mean loss of a batch: model(x, y) or model(x, y, shift).

    Its outputs depend on the training mode.
    """

    def __init__(self, weights: Sequence[Array]) -> None:
        super().__init__()
        self.layers = nn.Sequential(perceptron(weights), Louder())

    def forward(self, x: Tensor, y: Tensor, shift: Tensor | float = 0.0) -> Tensor:
        return F.mse_loss(self.layers(x) + shift, y)


def large_run(
    samples: int, length: int, width: int, layers: int, seed: int
) -> tuple[nn.Sequential, Tensor, Tensor]:
    """Return a float32 model with large saved tensors, and its inputs and targets."""
    rng = np.random.default_rng(seed)
    shape = (samples, length, width)
    weights = [rng.normal(0, width**-0.5, (width, width)).astype(np.float32) for _ in range(layers)]
    pair = [torch.from_numpy(rng.random(shape, dtype=np.float32)) for _ in range(2)]
    return perceptron(weights), pair[0], pair[1]


def normed_perceptron(weights: Sequence[Array], norm: str) -> nn.Sequential:
    """Return two linear layers with a norm and a tanh between them.

    The norm is "batch", "channels" (the same, for images of one pixel), "layer" or "none".
    """
    first, last = perceptron(weights[:1]), perceptron(weights[1:])
    width = weights[0].shape[0]
    between: dict[str, Callable[[], nn.Module]] = {
        "batch": lambda: nn.BatchNorm1d(width, dtype=torch.float64),
        "channels": lambda: nn.Sequential(
            nn.Unflatten(1, (width, 1, 1)),
            nn.BatchNorm2d(width, dtype=torch.float64),
            nn.Flatten(),
        ),
        "layer": lambda: nn.LayerNorm(width, dtype=torch.float64),
        "none": nn.Identity,
    }
    return nn.Sequential(*first, between[norm](), nn.Tanh(), *last)
