"""A batch's micro-batches, each by itself, and the losses and gradients that mistakes give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from autograder.content.lab05.gradients import (
    Array,
    Outcome,
    as_before,
    close,
    gradients_of,
    sizes_of,
    weighted,
)
from peakmem.probes.lab05 import LOSSES, small_model

__all__ = ["Pieces", "loss_mutants"]


class Pieces:
    """The loss and gradient of each micro-batch by itself, and the gradients before all of them."""

    def __init__(self, small: Mapping[str, Any], micro_batch: int) -> None:
        model = small_model(small["weights"]).train(small["training"])
        loss_fn = LOSSES[small["loss"]]
        inputs, targets = torch.tensor(small["inputs"]), torch.tensor(small["targets"])
        self.sizes = sizes_of(len(inputs), micro_batch)
        self.before = as_before(small["before"], [w.shape for w in small["weights"]])
        pieces = zip(
            torch.split(inputs, micro_batch), torch.split(targets, micro_batch), strict=True
        )
        losses = [loss_fn(model(x), y) for x, y in pieces]
        self.gradients = [gradients_of(model, loss) for loss in losses]
        self.losses = [loss.item() for loss in losses]
        whole = loss_fn(model(inputs), targets)
        self.right = Outcome(
            whole.item(), weighted([gradients_of(model, whole)], [1.0], self.before)
        )
        whole = loss_fn(model.train(not small["training"])(inputs), targets)
        self.other_mode = weighted([gradients_of(model, whole)], [1.0], self.before)

    def mutants(self) -> dict[str, list[Any]]:
        """The gradients that each mistake gives."""
        count, samples = len(self.sizes), sum(self.sizes)
        equal = [1 / count] * count
        shares = [size / samples for size in self.sizes]
        full = [size == self.sizes[0] for size in self.sizes]
        whole = sum(full)

        def sums(weights: list[float], keep: float = 1.0) -> Any:
            return weighted(self.gradients, weights, self.before, keep)

        last = [0.0] * (count - 1)
        return {
            "no_division": [sums([1.0] * count)],
            "clears_first": [sums(shares, 0.0), sums(equal, 0.0)],
            "scales_existing": [sums(equal, 1 / count)],
            "ragged_as_full": [sums(equal)],
            "counts_micro_batch": [sums([self.sizes[0] / samples] * count)],
            "drops_last": [
                sums([float(f) / whole for f in full]),
                sums([s * f for s, f in zip(shares, full, strict=True)]),
            ],
            "divides_by_samples": [sums([1 / samples] * count)],
            "other_mode": [self.other_mode],
            "last_only": [sums([*last, w], k) for w in (1.0, 1 / count) for k in (0.0, 1.0)],
        }

    def mistakes_in(self, got: list[Array]) -> list[str]:
        """The mistakes that give these gradients."""
        mutants = self.mutants().items()
        return [name for name, wrong in mutants if any(close(got, w) for w in wrong)]

    def loss_mutants(self) -> dict[str, float]:
        """The number that each mistake returns."""
        return loss_mutants(self.sizes, self.losses)


def loss_mutants(sizes: list[int], losses: list[float]) -> dict[str, float]:
    """Return the number that each mistake returns for micro-batches of these sizes and losses."""
    total, count = sum(losses), len(losses)
    return {
        "sums_losses": total,
        "no_division": total,
        "ragged_as_full": total / count,
        "counts_micro_batch": total * sizes[0] / sum(sizes),
        "last_loss": losses[-1],
        "last_loss_divided": losses[-1] / count,
        "not_divided_by_samples": sum(s * loss for s, loss in zip(sizes, losses, strict=True)),
    }
