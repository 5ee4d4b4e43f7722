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
from peakmem.specs.ledger import Owner
from peakmem.specs.models import ModelShape, parameter_count
from peakmem.specs.recipes import Parallelism, Recipe

__all__ = ["Estimate", "Verdict", "estimate"]

Verdict = Literal["fits", "may fit", "reduce activations", "no batch size can fix this"]

_MODEL_STATES: tuple[Owner, ...] = ("parameter", "gradient", "master", "optimizer_state")


@dataclass(frozen=True)
class Estimate(Fit):
    """A model, how it is trained, on what, and the ledger of one device's step."""

    model: ModelShape
    recipe: Recipe
    parallelism: Parallelism
    #: The pipeline's stage that the ledger is of, from 0: the one that needs the most.
    stage: int = 0

    @cached_property
    def verdict(self) -> Verdict:
        """Whether it fits or may fit and, where not, whether the batch could be to blame.

        It is to blame if one sequence at a time would fit. Otherwise the model's states, or a
        single sequence's activations, are too large by themselves.
        """
        if self.fits:
            return "fits"
        if not self.excess_bytes:  # it depends on what the allocator can give back
            return "may fit"
        if self.recipe.micro_batch == 1:
            return "no batch size can fix this"
        alone = replace(self.recipe, micro_batches=self.recipe.batch)
        smallest = estimate(self.model, alone, self.device, self.parallelism)
        return "reduce activations" if smallest.fits else "no batch size can fix this"

    @property
    def state_bytes(self) -> int:
        """Parameters, gradients, masters and optimizer state that are live at the peak."""
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
    """Predict one step of one device; of a pipeline, of the stage that needs the most.

    Raises ValueError for what `build_ledger` has no rules for, and for offloading from a device
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
    # A stage in the middle needs less than the second one, with fewer micro-batches under way.
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
