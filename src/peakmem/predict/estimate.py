"""Does it fit? One training step's predicted peak beside the memory of one device.

The prediction inherits `predict.build_ledger`'s omissions: the CUDA context, the workspaces of
libraries, the allocator's rounding and fragments, buffers of communication. All of them come out of
the memory that the device reports, so a step that fits with little to spare may still fail.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from peakmem.core.units import MiB
from peakmem.predict.caching_allocator import Replay, replay
from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.hardware import Accelerator
from peakmem.specs.ledger import Ledger, Owner
from peakmem.specs.models import ModelShape, parameter_count
from peakmem.specs.recipes import Parallelism, Recipe

__all__ = ["Estimate", "Verdict", "estimate"]

Verdict = Literal["fits", "reduce activations", "no batch size can fix this"]

# Of a process that runs torch: with CUDA's modules loaded lazily, as torch 1.13 and later ask for,
# and all of them at once (github.com/pytorch/pytorch/pull/86509). On top cuBLAS's workspace, which
# is at most this large by default (32 MiB, on Hopper and later; getChosenWorkspaceSize in torch).
_CONTEXT_BYTES = (287_047_680, 666_632_192 + 32 * MiB)

_MODEL_STATES: tuple[Owner, ...] = ("parameter", "gradient", "master", "optimizer_state")


@dataclass(frozen=True)
class Estimate:
    """A model, how it is trained, on what, and the ledger of one device's step."""

    model: ModelShape
    recipe: Recipe
    parallelism: Parallelism
    device: Accelerator
    ledger: Ledger

    @property
    def peak_bytes(self) -> int:
        """The most that is live at once on one device."""
        return self.ledger.peak_bytes

    @property
    def margin_bytes(self) -> int:
        """What is left of the device's memory at the peak; negative where it does not fit."""
        return self.device.memory_bytes - self.peak_bytes

    @property
    def fits(self) -> bool:
        """Whether the peak is at most the device's memory."""
        return self.margin_bytes >= 0

    @cached_property
    def verdict(self) -> Verdict:
        """Whether it fits and, where not, whether the batch could be to blame.

        It is to blame if one sequence at a time would fit. Otherwise the model's states, or a
        single sequence's activations, are too large by themselves.
        """
        if self.fits:
            return "fits"
        if self.recipe.micro_batch == 1:
            return "no batch size can fix this"
        alone = replace(self.recipe, micro_batches=self.recipe.batch)
        smallest = build_ledger(self.model, alone, self.parallelism)
        fits = smallest.peak_bytes <= self.device.memory_bytes
        return "reduce activations" if fits else "no batch size can fix this"

    @cached_property
    def allocation(self) -> Replay:
        """What torch's caching allocator makes of the step."""
        return replay(self.ledger)

    @property
    def process_bytes(self) -> tuple[int, int]:
        """What the whole process takes: at the least, and with all that the allocator reserves.

        Where that is too much, torch first gives back segments that are wholly free.
        """
        low, high = _CONTEXT_BYTES
        return self.peak_bytes + low, self.allocation.reserved_bytes + high

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
            "peak_bytes": self.peak_bytes,
            "allocated_bytes": self.allocation.allocated_bytes,
            "reserved_bytes": self.allocation.reserved_bytes,
            "process_bytes": self.process_bytes,
            "peak_phase": self.ledger.peak_phase,
            "by_owner": self.ledger.by_owner(),
            "memory_bytes": self.device.memory_bytes,
            "memory_source": self.device.memory.source,
            "margin_bytes": self.margin_bytes,
            "fits": self.fits,
            "verdict": self.verdict,
        }


def estimate(
    model: ModelShape,
    recipe: Recipe,
    device: Accelerator,
    parallelism: Parallelism | None = None,
) -> Estimate:
    """Predict one step of one device.

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
    ledger = build_ledger(model, recipe, parallelism)
    return Estimate(model, recipe, parallelism, device, ledger)
