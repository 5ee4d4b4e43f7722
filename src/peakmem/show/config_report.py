"""Output of `peakmem estimate --config`: parameters by group, and the bytes of model states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from peakmem.core.units import both
from peakmem.predict.model_states import model_states
from peakmem.show.step_report import head, row
from peakmem.specs.families import read_parameters, step_shape
from peakmem.specs.ledger import Owner
from peakmem.specs.model_config import read_config
from peakmem.specs.models import ModelShape
from peakmem.specs.parameter_table import ParameterTable
from peakmem.specs.recipes import Parallelism, Recipe

__all__ = ["ConfigReport"]


@dataclass(frozen=True)
class ConfigReport:
    """A model that is given by its config, and how it is trained."""

    #: The config as the user gave it.
    name: str
    #: The model's parameters.
    table: ParameterTable
    #: Whether the config's entries were enough; if not, transformers built the model.
    was_read: bool
    #: The shape for predicting a step; None if there are no rules for the model.
    shape: ModelShape | None
    #: How the model is trained.
    recipe: Recipe
    #: Bytes by owner; empty if the step can be predicted.
    states: dict[Owner, int]

    @classmethod
    def of(cls, given: str, recipe: Recipe, parallelism: Parallelism) -> ConfigReport:
        """Read the config. Raises ValueError, with the remedy, if that is impossible."""
        config = read_config(given)
        shape = step_shape(config, given, recipe.sequence)
        read = table = read_parameters(config)
        if table is None:
            from peakmem.measure.meta_model import built_parameters  # late, because it loads torch

            table = built_parameters(config)
        states: dict[Owner, int] = {}
        if shape is None:
            states = model_states(table, recipe, parallelism)
        return cls(given, table, read is not None, shape, recipe, states)

    @property
    def how(self) -> str:
        """The source of the counts, as a sentence."""
        if self.was_read:
            return f"read from the config as a {self.table.class_name}."
        return f"built by transformers on the meta device as a {self.table.class_name}."

    @property
    def state_bytes(self) -> int:
        """Bytes of all states."""
        return sum(self.states.values())

    def is_too_large(self, memory_bytes: int | None) -> bool:
        """Whether the states alone exceed the memory; False if no memory is given."""
        return memory_bytes is not None and self.state_bytes > memory_bytes

    @property
    def assumptions(self) -> list[str]:
        """A sentence for each assumption of the step's prediction."""
        if self.shape is None or not self.shape.hugging_face:
            return []
        return [
            f"Dropout is {self.recipe.dropout:g}, from --dropout; the config's value is ignored."
        ]

    # Text.

    def parameter_lines(self) -> Iterator[str]:
        """Yield the parameters by group."""
        table = self.table
        yield f"{self.name}: {self.how}"
        yield ""
        yield f"{'parameters':<28}{'number':>20}"
        for group, n in table.by_group().items():
            yield f"  {group:<26}{n:>20,}  {n / table.total:6.1%}"
        yield f"  {'total':<26}{table.total:>20,}"
        if table.active is None:
            yield "How many parameters one token uses is unknown: transformers built the model."
        elif table.active != table.total:
            share = table.active / table.total
            yield f"  {'active for one token':<26}{table.active:>20,}  {share:6.1%}"

    def state_lines(self, memory_bytes: int | None) -> Iterator[str]:
        """Yield the bytes of weights, gradients and optimizer state."""
        yield head(f"{self.recipe.precision}, {self.recipe.optimizer}")
        for owner, n_bytes in self.states.items():
            yield row(owner.replace("_", " "), n_bytes)
        yield row("total", self.state_bytes)
        yield ""
        yield from self.notes(memory_bytes)

    def notes(self, memory_bytes: int | None) -> Iterator[str]:
        """Yield whether the states alone are too large, and what the count leaves out."""
        if memory_bytes is not None and self.is_too_large(memory_bytes):
            excess = both(self.state_bytes - memory_bytes)
            yield f"It doesn't fit: even without activations it needs {excess} more."
        elif memory_bytes is not None:
            left = both(memory_bytes - self.state_bytes)
            yield f"This leaves {left} for activations, which may or may not fit."
        yield (
            f"Activations and temporaries are not predicted for this {self.table.model_type}; use "
            "--trace to run its step on tensors without memory."
        )

    # JSON.

    def as_json(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {
            "model": self.name,
            "model_type": self.table.model_type,
            "class": self.table.class_name,
            "counted_by": "config" if self.was_read else "transformers",
            "parameters": self.table.total,
            "active_parameters": self.table.active,
            "by_group": self.table.by_group(),
        }

    def states_as_json(self, memory_bytes: int | None) -> dict[str, Any]:
        """Return the states as plain data, in bytes; `fits` is null if that is unknown."""
        return {
            "by_owner": self.states,
            "state_bytes": self.state_bytes,
            "peak_bytes": None,
            "memory_bytes": memory_bytes,
            "fits": False if self.is_too_large(memory_bytes) else None,
            "notes": list(self.notes(memory_bytes)),
        }
