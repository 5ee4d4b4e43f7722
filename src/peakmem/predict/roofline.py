"""The least time of a micro-batch: by arithmetic or by memory traffic, whichever takes longer.

The roofline model (Williams, Waterman and Patterson 2009). It is a lower bound: launching kernels,
waiting between them and imperfect use of either come on top.
"""

from __future__ import annotations

from peakmem.specs.hardware import Accelerator
from peakmem.specs.models import ModelShape, parameter_count
from peakmem.specs.recipes import Recipe, storage_bytes

__all__ = ["micro_batch_seconds"]

_READS = 3  # of the weights: forward, gradients of the inputs, and the gradients' own update


def micro_batch_seconds(model: ModelShape, recipe: Recipe, device: Accelerator) -> float:
    """Return the least seconds of one micro-batch's forward and backward.

    Arithmetic is 6 operations for each parameter and token, 8 with full checkpointing, at the
    device's dense rate in the recipe's format (fp32's where it has none). Traffic is the weights:
    read forward and backward, and gradients of their size read or written once. Activations'
    traffic is left out. The smaller the micro-batch, the more the weights' traffic weighs.

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
