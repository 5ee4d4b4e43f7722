"""A lower bound on a micro-batch's time: arithmetic or memory traffic, whichever takes longer.

This is the roofline model (Williams, Waterman and Patterson 2009). Real steps take longer, because
of kernel launches, gaps between kernels, and imperfect use of arithmetic and bandwidth.
"""

from __future__ import annotations

from peakmem.specs.hardware import Accelerator
from peakmem.specs.models import ModelShape, parameter_count
from peakmem.specs.recipes import Recipe, storage_bytes

__all__ = ["micro_batch_seconds"]

_READS = 3  # passes over the weights' bytes: forward, backward, and the gradients


def micro_batch_seconds(model: ModelShape, recipe: Recipe, device: Accelerator) -> float:
    """Return the minimum number of seconds that one micro-batch's forward and backward take.

    Arithmetic is 6 operations for each parameter and token, 8 with full checkpointing, at the
    device's dense rate in the recipe's format (or in fp32 if it has no rate for it). Traffic is the
    weights, read forward and backward, and gradients of the same size, read or written once.
    Traffic of activations is left out. In small micro-batches, the weights' traffic dominates.

    >>> from peakmem.specs.hardware import accelerator
    >>> from peakmem.specs.models import model
    >>> gpu, gpt2 = accelerator("a100-80gb"), model("gpt2")
    >>> one = micro_batch_seconds(gpt2, Recipe(precision="bf16", sequence=16), gpu)
    >>> two = micro_batch_seconds(gpt2, Recipe(precision="bf16", sequence=16, batch=2), gpu)
    >>> one == two  # both wait for the weights
    True
    """
    n_parameters = sum(parameter_count(model).values())
    tokens = recipe.micro_batch * recipe.sequence
    rate = device.tflops.get(recipe.formats.compute, device.tflops["fp32"]) * 1e12
    arithmetic = (8 if recipe.segment else 6) * n_parameters * tokens / rate
    traffic = _READS * storage_bytes(n_parameters, recipe.formats.weights)
    return max(arithmetic, traffic / device.bandwidth_bytes_per_s)
