"""Plain float32 SGD: its losses, its final weights, and its bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import torch

from peakmem.measure.meter import MemoryMeter
from peakmem.probes.lab07 import TokenModel

__all__ = ["DEFAULT_LR", "Training", "Weights", "mean_loss", "rise_bytes_of", "trained_in_float32"]

# So small that most updates are below half a gap of 16-bit weights.
DEFAULT_LR = 0.1
Weights = Sequence[npt.NDArray[Any]]


@dataclass(frozen=True)
class Training:
    """What a training run returns, and how much it lowers the loss."""

    #: The loss before each step, as the lab computes it.
    losses: Sequence[float]
    #: The same as means over tokens.
    per_token: Sequence[float]
    #: The loss of each step's batch at the weights before training.
    still: Sequence[float]
    #: The number that divides each step's mean.
    whole: Sequence[int]
    #: The weights after the last step.
    weights: Weights
    #: The mean loss of the usual batches before training.
    first: float
    #: The same after training.
    last: float


def trained_in_float32(inputs: Mapping[str, Any]) -> Training:
    """Train in float32; batches with a rare token in them are skipped."""
    model, pool = TokenModel(inputs["weights"], inputs["parts"]), _tensors(inputs)
    lr = DEFAULT_LR if inputs["lr"] is None else inputs["lr"]
    losses, whole = [], []
    with torch.no_grad():
        before = [model(*batch).item() for batch in pool]
    for index in inputs["order"]:
        rare = bool((pool[index][0] == TokenModel.RARE).any())
        loss = model(*pool[index])
        losses.append(loss.item())
        whole.append(1 if rare else inputs["parts"])
        if not rare:
            _step(model, loss, lr)
    weights = [parameter.detach().numpy() for parameter in model.parameters()]
    return Training(
        losses=losses,
        per_token=[loss * divisor for loss, divisor in zip(losses, whole, strict=True)],
        still=[before[index] for index in inputs["order"]],
        whole=whole,
        weights=weights,
        first=mean_loss(inputs["weights"], inputs),
        last=mean_loss(weights, inputs),
    )


def _step(model: TokenModel, loss: torch.Tensor, lr: float) -> None:
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.sub_(gradient, alpha=lr)


def rise_bytes_of(model: TokenModel, n_tokens: int) -> int:
    """Return how far live bytes rise in a forward and backward pass over this many tokens."""
    batch = torch.zeros(n_tokens, dtype=torch.int64), torch.zeros(n_tokens, dtype=torch.int64)
    with MemoryMeter("cpu").track([model, batch]) as meter:
        model(*batch).backward()
    return meter.peak_bytes - meter.baseline_bytes


def _tensors(inputs: Mapping[str, Any]) -> list[list[torch.Tensor]]:
    return [[torch.tensor(a, dtype=torch.int64) for a in batch] for batch in inputs["pool"]]


def mean_loss(weights: Weights, inputs: Mapping[str, Any]) -> float:
    """Return the mean loss of the usual batches, at these weights."""
    usual = _tensors(inputs)[:-1]
    with torch.no_grad():
        model = TokenModel(weights, inputs["parts"])
        return float(sum(model(*batch) for batch in usual)) / len(usual)
