"""Bytes of weights, gradients, master weights and optimizer state: what no batch size changes."""

from __future__ import annotations

from math import prod

from peakmem.specs.ledger import Owner
from peakmem.specs.parameter_table import Parameter, ParameterTable
from peakmem.specs.recipes import Recipe, state_shapes, storage_bytes

__all__ = ["model_states"]


def model_states(table: ParameterTable, recipe: Recipe) -> dict[Owner, int]:
    """Return the bytes by owner, on one device that trains all parameters.

    The optimizer's step counters are left out, 4 bytes a tensor. Raises ValueError for a recipe
    with adapters or offloading.

    >>> from peakmem.specs.parameter_table import Parameter
    >>> square = ParameterTable("one", "One", (Parameter("mlp", (10, 10)),))
    >>> model_states(square, Recipe("mixed", "adamw"))
    {'parameter': 200, 'gradient': 200, 'master': 400, 'optimizer_state': 800}
    """
    if recipe.lora_rank or recipe.offload:
        raise ValueError(
            "weights, gradients and optimizer state are counted for one device that trains all "
            "parameters; leave out lora_rank and offload"
        )
    formats = recipe.formats
    found: dict[Owner, int] = {
        "parameter": _stored(table, formats.weights),
        "gradient": _stored(table, formats.gradients),
    }
    if formats.master:
        found["master"] = _stored(table, formats.master)
    states = sum(_state(parameter, recipe) for parameter in table.parameters)
    return found | {"optimizer_state": states} if states else found


def _stored(table: ParameterTable, dtype: str) -> int:
    return sum(storage_bytes(prod(p.shape), dtype) * p.copies for p in table.parameters)


def _state(parameter: Parameter, recipe: Recipe) -> int:
    states = state_shapes(recipe.optimizer, parameter.shape, recipe.formats.states)
    one = sum(storage_bytes(prod(shape), dtype) for shape, dtype in states.values())
    return one * parameter.copies
