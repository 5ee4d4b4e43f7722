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

    ZeRO cuts each tensor into as many parts as there are devices with the same weights: experts
    that replicas share have fewer of them (Rajbandari et al. 2022, DeepSpeed-MoE). This leaves out
    ZeRO's temporarily gathered tensors and the optimizer's step counters, 4 bytes per tensor. LOMO
    has one gradient at a time, so only the largest counts. Raises ValueError for adapters of layers
    that a table does not know by name, for experts that cannot be shared, and for tensor and
    pipeline parallelism.

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
    table = table.with_experts_shared(many.expert)
    formats = recipe.formats
    adapters = list(_adapters(table, recipe))
    trained = adapters if recipe.lora_rank else list(table.parameters)

    def of(parameters: Iterable[Parameter], dtype: str, stage: int) -> int:
        return sum(
            ceil(storage_bytes(prod(p.shape), dtype) / _parts(p, many, stage)) * p.copies
            for p in parameters
        )

    whole, experts = (_parts(Parameter(group, (1,)), many, 3) for group in ("mlp", "experts"))
    weights = weight_bytes(table, formats.weights, recipe.quantized_base, whole, experts)
    found: dict[Owner, int] = {"parameter": weights + of(adapters, formats.weights, 3)}
    if recipe.offload:
        return found
    gradients = [of([replace(p, copies=1)], formats.gradients, 2) for p in trained]
    found["gradient"] = of(trained, formats.gradients, 2)
    if not recipe.keeps_gradients:
        found["gradient"] = max(gradients, default=0)
    if formats.master:
        found["master"] = of(trained, formats.master, 1)
    states = sum(_state(p, recipe, _parts(p, many, 1)) for p in trained)
    return found | {"optimizer_state": states} if states else found


def _parts(parameter: Parameter, many: Parallelism, stage: int) -> int:
    """Return the number of parts that ZeRO cuts a tensor into, if it does from `stage` on."""
    if many.zero < stage:
        return 1
    return many.shards // (many.expert if parameter.group == "experts" else 1)


def weight_bytes(
    table: ParameterTable,
    dtype: str,
    quantized: str | Blocks | None = None,
    parts: int = 1,
    expert_parts: int | None = None,
) -> int:
    """Return the bytes of one part of all weights, each cut into `parts` equal parts.

    Routed experts are cut into `expert_parts` instead, unless that is None. `quantized` is the
    format of the matrices of attention, MLP and experts, which come with scales (a format of
    recipes, or a scheme's blocks); all other weights are in `dtype`.

    >>> table = ParameterTable("two", "Two", (Parameter("mlp", (8, 64)), Parameter("norm", (64,))))
    >>> weight_bytes(table, "bf16", "int8")
    672
    """
    total = 0
    for parameter in table.parameters:
        n = parts if expert_parts is None or parameter.group != "experts" else expert_parts
        is_matrix = parameter.group in _QUANTIZED and len(parameter.shape) >= 2
        if isinstance(quantized, Blocks) and is_matrix:
            total += ceil(quantized.stored_bytes(prod(parameter.shape)) / n) * parameter.copies
            continue
        if isinstance(quantized, str) and is_matrix:
            scales = quantized_scales(parameter.shape, quantized).values()
            tensors = [(parameter.shape, quantized), *scales]
        else:
            tensors = [(parameter.shape, dtype)]
        one = sum(ceil(storage_bytes(prod(shape), kind) / n) for shape, kind in tensors)
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
