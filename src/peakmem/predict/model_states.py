"""Bytes of model states: weights, gradients, master weights and optimizer state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import ceil, prod

from peakmem.numbers.quantization import Blocks
from peakmem.specs.adapters import adapted_groups
from peakmem.specs.ledger import Owner
from peakmem.specs.parameter_table import Group, Parameter, ParameterTable
from peakmem.specs.recipes import (
    Parallelism,
    Recipe,
    quantized_scales,
    state_shapes,
    storage_bytes,
)

__all__ = ["model_states", "weight_bytes"]

_IN_LAYERS: tuple[Group, ...] = ("attention", "mlp", "router", "experts")
_QUANTIZED: tuple[Group, ...] = ("attention", "mlp", "experts")


def model_states(
    table: ParameterTable, recipe: Recipe, parallelism: Parallelism | None = None
) -> dict[Owner, int]:
    """Return the bytes by owner on one device.

    ZeRO cuts each tensor into as many parts as there are replicas. The count leaves out parameters
    that ZeRO gathers temporarily, and the optimizer's step counters (4 bytes per tensor). LOMO
    holds one gradient at a time, and the largest counts. Raises ValueError if adapters target
    layers that the table doesn't know by name, or under tensor or pipeline parallelism.

    >>> from peakmem.specs.parameter_table import Parameter
    >>> square = ParameterTable("one", "One", (Parameter("mlp", (10, 10)),))
    >>> model_states(square, Recipe("mixed", "adamw"))
    {'parameter': 200, 'gradient': 200, 'master': 400, 'optimizer_state': 800}
    """
    many = parallelism or Parallelism()
    if many.tensor > 1 or many.pipeline > 1:
        raise ValueError(
            f"a {table.model_type} can be shared by ZeRO only; leave out --tensor-parallel and "
            "--pipeline"
        )
    formats = recipe.formats
    adapters = list(_adapters(table, recipe))
    trained = adapters if recipe.lora_rank else list(table.parameters)

    def of(parameters: Iterable[Parameter], dtype: str, stage: int) -> int:
        parts = many.data if many.zero >= stage else 1
        sizes = ((storage_bytes(prod(p.shape), dtype), p.copies) for p in parameters)
        return sum(ceil(size / parts) * copies for size, copies in sizes)

    parts = many.data if many.zero >= 3 else 1
    found: dict[Owner, int] = {
        "parameter": weight_bytes(table, formats.weights, recipe.quantized_base, parts)
        + of(adapters, formats.weights, 3)
    }
    if recipe.offload:
        return found
    gradients = [of([replace(p, copies=1)], formats.gradients, 2) for p in trained]
    found["gradient"] = of(trained, formats.gradients, 2)
    if not recipe.keeps_gradients:
        found["gradient"] = max(gradients, default=0)
    if formats.master:
        found["master"] = of(trained, formats.master, 1)
    state_parts = many.data if many.zero else 1
    states = sum(_state(parameter, recipe, state_parts) for parameter in trained)
    return found | {"optimizer_state": states} if states else found


def weight_bytes(
    table: ParameterTable, dtype: str, quantized: str | Blocks | None = None, parts: int = 1
) -> int:
    """Return the bytes of one part of all weights, each cut into `parts` equal parts.

    `quantized` is a format of the matrices of attention, MLP and experts, with their scales; all
    else is in `dtype`. Blocks of a scheme are an alternative to the formats of recipes.

    >>> table = ParameterTable("two", "Two", (Parameter("mlp", (8, 64)), Parameter("norm", (64,))))
    >>> weight_bytes(table, "bf16", "int8")
    672
    """
    total = 0
    for parameter in table.parameters:
        is_matrix = parameter.group in _QUANTIZED and len(parameter.shape) >= 2
        if isinstance(quantized, Blocks) and is_matrix:
            total += ceil(quantized.stored_bytes(prod(parameter.shape)) / parts) * parameter.copies
            continue
        if isinstance(quantized, str) and is_matrix:
            scales = quantized_scales(parameter.shape, quantized).values()
            tensors = [(parameter.shape, quantized), *scales]
        else:
            tensors = [(parameter.shape, dtype)]
        one = sum(ceil(storage_bytes(prod(shape), kind) / parts) for shape, kind in tensors)
        total += one * parameter.copies
    return total


def _adapters(table: ParameterTable, recipe: Recipe) -> Iterable[Parameter]:
    """Yield the two narrow matrices of each adapter."""
    if not recipe.lora_rank:
        return
    groups = adapted_groups(recipe.lora_targets)
    for parameter in table.parameters:
        if parameter.group in groups and len(parameter.shape) == 2:
            wide, narrow = parameter.shape
            for shape in ((recipe.lora_rank, narrow), (wide, recipe.lora_rank)):
                yield Parameter(parameter.group, shape, parameter.copies)


def _state(parameter: Parameter, recipe: Recipe, parts: int) -> int:
    in_layer = parameter.group in _IN_LAYERS
    dtype = recipe.formats.states
    states = state_shapes(recipe.optimizer, parameter.shape, dtype, in_layer=in_layer)
    one = sum(ceil(storage_bytes(prod(shape), kind) / parts) for shape, kind in states.values())
    return one * parameter.copies
