"""What an epoch of updates does, correctly or with one mistake: the judge's reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from autograder.content.lab05.gradients import Array, gradients_of
from peakmem.probes.lab05 import Regression

__all__ = ["MUTANTS", "norm", "simulate"]

MUTANTS = (
    "no_division",
    "last_group_as_full",
    "drops_last_group",
    "never_clears",
    "clears_each",
    "updates_each",
    "one_update_too_many",
    "clips_each",
    "always_scales",
    "schedules_each",
    "never_schedules",
    "takes_zero_for_none",
    "never_clips",
    "clips_per_group",
    "dirty_at_the_end",
    "counts_micro_batches",
    "evaluation_mode",
)

_DIRTY = ("never_clears", "dirty_at_the_end", "drops_last_group")


def simulate(inputs: Mapping[str, Any], mutant: str = "") -> dict[str, Any]:
    """Return the events of a correct train_epoch, or of one that makes the mistake `mutant`."""
    model = Regression(inputs["weights"]).train(mutant != "evaluation_mode")
    training = _Training(inputs, mutant)
    batches, steps = inputs["batches"], inputs["accumulation_steps"]
    for start in range(0, len(batches), steps):
        group = batches[start : start + steps]
        if mutant == "drops_last_group" and len(group) < steps:
            for batch in group:  # backward was called, but not the step
                training.backward(model, batch, steps)
            continue
        divisor = steps if mutant == "last_group_as_full" else len(group)
        for batch in group:
            training.backward(model, batch, divisor)
        training.update(model)
    if mutant == "one_update_too_many" and len(batches) % steps == 0:
        training.update(model)
    count = len(batches) if mutant == "counts_micro_batches" else training.events.count("update")
    return {
        "value": count,
        "events": training.events,
        "clips": inputs["max_norm"] is not None,
        "gradients": training.noted,
        "clean": mutant not in _DIRTY or not batches,
        "waiting": 0,
        "forwards": len(batches),
    }


class _Training:
    """The gradients summed so far, and the earlier updates."""

    def __init__(self, inputs: Mapping[str, Any], mutant: str) -> None:
        self._inputs, self._mutant, self._lr = inputs, mutant, inputs["lr"]
        self.sum: list[Array] | None = None
        self.noted: list[list[Array | None]] = []
        self.events: list[str] = []

    def backward(self, model: Regression, batch: list[Array], divisor: int) -> None:
        arguments = (torch.tensor(array) for array in batch)
        whole = self._mutant in ("no_division", "updates_each")
        own = gradients_of(model, model(*arguments) / (1 if whole else divisor))
        if self._mutant == "clears_each":
            self.sum = None
        old = self.sum or [np.zeros_like(gradient) for gradient in own]
        self.sum = [a + b for a, b in zip(old, own, strict=True)]
        if self._mutant == "clips_each":
            self.sum = self._clipped(self.sum)
        if self._mutant == "schedules_each":
            self._schedule()
        if self._mutant == "updates_each":
            self.update(model)
            self.sum = None

    def update(self, model: Regression) -> None:
        if self._mutant == "updates_each" and self.sum is None:
            return
        found: list[Any] = self.sum or [None for _ in model.parameters()]
        if self.sum and self._mutant != "never_clips":
            found = self.sum = self._clipped(self.sum)
        self.noted.append(list(found))
        self.events.append("update")
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), found, strict=True):
                if gradient is not None:
                    parameter.sub_(torch.tensor(self._lr * gradient))
        if self._mutant not in ("never_schedules", "schedules_each"):
            self._schedule()
        if self._mutant != "never_clears":
            self.sum = None

    def _clipped(self, gradients: list[Array]) -> list[Array]:
        limit, length = self._inputs["max_norm"], norm(gradients)
        if limit is None or (limit == 0 and self._mutant == "takes_zero_for_none"):
            return gradients
        if length <= limit and self._mutant != "always_scales":
            return gradients
        if self._mutant == "clips_per_group":
            return [gradient * min(limit / norm([gradient]), 1) for gradient in gradients]
        return [gradient * limit / length for gradient in gradients]

    def _schedule(self) -> None:
        if self._inputs["lr_factor"] is not None:
            self.events.append("schedule")
            self._lr *= self._inputs["lr_factor"]


def norm(gradients: list[Any]) -> float:
    """Return the norm of all gradients together."""
    return float(np.sqrt(sum(float((gradient**2).sum()) for gradient in gradients)))
