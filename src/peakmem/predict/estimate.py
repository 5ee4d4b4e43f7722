"""Does it fit? One training step's predicted peak and its process, on one device.

The prediction inherits `predict.build_ledger`'s omissions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from peakmem.predict.fit import Fit
from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.hardware import Accelerator
from peakmem.specs.ledger import Ledger, Owner, Tensor
from peakmem.specs.models import ModelShape, parameter_count
from peakmem.specs.recipes import Parallelism, Recipe

__all__ = ["Estimate", "Verdict", "estimate"]

Verdict = Literal["fits", "may fit", "reduce activations", "no batch size can fix this"]

_PLAYED = 3  # micro-batches, of many equal ones
_MODEL_STATES: tuple[Owner, ...] = ("parameter", "gradient", "master", "optimizer_state")


@dataclass(frozen=True)
class Estimate(Fit):
    """A model, its recipe and parallelism, a device, and the ledger of one step on it."""

    #: The model's sizes.
    model: ModelShape
    #: How it is trained.
    recipe: Recipe
    #: How the step is divided among devices.
    parallelism: Parallelism
    #: The pipeline's stage that the ledger is of, from 0: the one that needs the most.
    stage: int = 0

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the step fits, may fit, or doesn't; and whether a smaller batch would help.

        "reduce activations" means that one sequence at a time would fit. If not even that fits, the
        model states or a single sequence's activations are too large.
        """
        if self.fits:
            return "fits"
        if not self.excess_bytes:  # it depends on how much memory the allocator can release
            return "may fit"
        if self.recipe.micro_batch == 1:
            return "no batch size can fix this"
        last = len(self.ledger.events) - 1
        stands = (t.bytes for t in self.ledger.tensors if t.birth == 0 and t.death == last)
        too_large = sum(stands) > self.device.memory_bytes  # whatever else is added to it
        if too_large or not self._one_at_a_time().fits:
            return "no batch size can fix this"
        return "reduce activations"

    def _one_at_a_time(self) -> Estimate:
        """Return the same step in micro-batches of one sequence.

        From the second on, all micro-batches are alike, so without a pipeline only a few are
        played, and the others' tokens are added.
        """
        batch = self.recipe.batch
        played = batch if self.parallelism.pipeline > 1 else min(batch, _PLAYED)
        recipe = replace(self.recipe, batch=played, micro_batches=played)
        few = estimate(self.model, recipe, self.device, self.parallelism)
        if not (others := batch - played):
            return few
        shape = 2 * others, recipe.sequence
        n_bytes, last = 8 * shape[0] * shape[1], len(few.ledger.events) - 1
        waiting = Tensor("other tokens", "activation", shape, "int64", n_bytes, 0, last)
        return replace(few, ledger=Ledger((waiting, *few.ledger.tensors), few.ledger.events))

    @property
    def state_bytes(self) -> int:
        """Bytes of parameters, gradients, master weights and optimizer state live at the peak."""
        by_owner = self.ledger.by_owner()
        return sum(by_owner.get(owner, 0) for owner in _MODEL_STATES)

    def as_json(self) -> dict[str, Any]:
        """Return the figures as plain data, in bytes."""
        return {
            "model": self.model.name,
            "gpu": self.device.name or None,
            "parameters": sum(parameter_count(self.model).values()),
            "devices": self.parallelism.devices,
            "stage": self.stage,
            **super().as_json(),
            "verdict": self.verdict,
        }


def estimate(
    model: ModelShape,
    recipe: Recipe,
    device: Accelerator,
    parallelism: Parallelism | None = None,
) -> Estimate:
    """Predict one step on one device; with a pipeline, on the stage that needs the most.

    Raises ValueError if `build_ledger` has no rules for the step, or if it offloads from a device
    that shares the host's memory.

    >>> from peakmem.specs.hardware import accelerator
    >>> from peakmem.specs.models import model
    >>> step = Recipe(precision="amp_bf16", batch=4, sequence=1024)
    >>> estimate(model("gpt2"), step, accelerator("rtx3090-24gb")).verdict
    'fits'
    """
    parallelism = parallelism or Parallelism()
    if recipe.offload and device.unified:
        raise ValueError(
            f"offload=True frees nothing on {device.name}, which shares the host's memory; "
            "leave it out"
        )
    # A stage in the middle needs less than the second one, with fewer micro-batches in flight.
    stages = sorted({0, min(1, parallelism.pipeline - 1), parallelism.pipeline - 1})
    found = [
        Estimate(
            device=device,
            ledger=build_ledger(model, recipe, parallelism, stage=stage),
            model=model,
            recipe=recipe,
            parallelism=parallelism,
            stage=stage,
        )
        for stage in stages
    ]
    return found[0] if len(found) == 1 else max(found, key=lambda one: one.needed_bytes)
