"""A cache of estimates for calculators: another device needs no second prediction."""

from __future__ import annotations

from functools import lru_cache

from peakmem.core.collector import no_collection
from peakmem.predict.estimate import Estimate, estimate
from peakmem.specs.hardware import ACCELERATORS, Accelerator, accelerator
from peakmem.specs.models import MODELS, ModelShape
from peakmem.specs.recipes import Parallelism, Recipe

__all__ = ["QUICK_MODELS", "is_whole", "remembered_estimate"]

#: Models whose ledger is quickly made, for calculators that need several for each picture.
QUICK_MODELS = tuple(name for name in MODELS if name.startswith("gpt2"))

_AT_ONCE = 1500  # tensors of a step whose allocation and verdict take 30 ms at most


def remembered_estimate(
    shape: ModelShape,
    recipe: Recipe,
    gpu: str,
    devices: Parallelism | None = None,
    *,
    allocation: bool = True,
) -> Estimate:
    """Return `estimate` of the same arguments, predicted once for all devices.

    Without `allocation`, it may be missing yet, because a large model's takes as long as its
    ledger. Raises ValueError as `estimate` does.
    """
    device = accelerator(gpu)
    with no_collection():
        return _on(device, shape, recipe, devices, allocation)


def is_whole(found: Estimate) -> bool:
    """Whether an estimate has all figures, so that its verdict takes no time."""
    return found.device.unified or "allocation" in vars(found)


def _on(
    device: Accelerator,
    shape: ModelShape,
    recipe: Recipe,
    devices: Parallelism | None,
    allocation: bool,
) -> Estimate:
    if recipe.offload and device.unified:
        return estimate(shape, recipe, device, devices)  # which refuses it
    found = _anywhere(shape, recipe, devices or Parallelism())
    if not device.unified and (allocation or len(found.ledger.tensors) <= _AT_ONCE):
        _ = found.allocation  # so that the next device has it too
    return found.on(device)


@lru_cache(maxsize=64)
def _anywhere(shape: ModelShape, recipe: Recipe, devices: Parallelism) -> Estimate:
    board = next(one for one in map(accelerator, ACCELERATORS) if not one.unified)
    return estimate(shape, recipe, board, devices)
