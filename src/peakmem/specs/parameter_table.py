"""A model's parameters as a table: shapes by group, counted in total and per active token.

A tied head counts once, as embedding. In a mixture of experts, a token uses a few of each layer's
routed experts and everything else; shared experts count as MLP. Embedding tables count as active in
full, as in the active counts that papers print.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import Literal, get_args

from peakmem.specs.models import ModelShape, parameter_tensors

__all__ = [
    "GROUPS",
    "Group",
    "Parameter",
    "ParameterTable",
    "layer_norm",
    "linear",
    "repeated",
    "table_of_shape",
]

Group = Literal["embedding", "attention", "mlp", "router", "experts", "norm", "head", "other"]
GROUPS: tuple[Group, ...] = get_args(Group)


@dataclass(frozen=True)
class Parameter:
    """Parameters of one shape and purpose."""

    #: What it is for.
    group: Group
    #: The shape in torch.
    shape: tuple[int, ...]
    #: How many of them the model has; for example, one in each layer.
    copies: int = 1
    #: How many experts along the first dimension a token uses; None if it uses all.
    used: int | None = None

    @property
    def elements(self) -> int:
        """Number of elements of all copies."""
        return prod(self.shape) * self.copies

    @property
    def active(self) -> int:
        """Number of elements that a token uses."""
        return self.elements if self.used is None else self.elements // self.shape[0] * self.used


@dataclass(frozen=True)
class ParameterTable:
    """All parameters of a model.

    >>> table = ParameterTable("moe", "Moe", (Parameter("experts", (8, 10, 10), used=2),))
    >>> table.total, table.active
    (800, 200)
    """

    #: The family, as a config.json names it.
    model_type: str
    #: The class in transformers that has these parameters.
    class_name: str
    #: All parameters, equal ones together.
    parameters: tuple[Parameter, ...]
    #: Whether the active parameters are known.
    knows_active: bool = True

    @property
    def total(self) -> int:
        """Number of all parameters."""
        return sum(parameter.elements for parameter in self.parameters)

    def with_experts_shared(self, devices: int) -> ParameterTable:
        """Return the table of one of the devices that share each layer's routed experts.

        Raises ValueError if it has none, or they cannot be shared equally.
        """
        if devices == 1:
            return self
        counts = {p.shape[0] for p in self.parameters if p.group == "experts"}
        if not counts:
            known = "" if self.knows_active else " that are known"
            raise ValueError(
                f"a {self.model_type} has no experts{known} for {devices} devices to share; leave "
                "out --expert-parallel"
            )
        if uneven := [n for n in counts if n % devices]:
            raise ValueError(
                f"{devices} devices can't share {uneven[0]} experts equally; let "
                "--expert-parallel divide them"
            )
        return replace(
            self,
            parameters=tuple(
                replace(p, shape=(p.shape[0] // devices, *p.shape[1:]), used=None)
                if p.group == "experts"
                else p
                for p in self.parameters
            ),
        )

    @property
    def active(self) -> int | None:
        """Number of parameters that a token uses; None if unknown."""
        if not self.knows_active:
            return None
        return sum(parameter.active for parameter in self.parameters)

    def by_group(self) -> dict[Group, int]:
        """Return the number of parameters by group, in the order of GROUPS, without zeros."""
        sums = dict.fromkeys(GROUPS, 0)
        for parameter in self.parameters:
            sums[parameter.group] += parameter.elements
        return {group: n for group, n in sums.items() if n}


# A ModelShape's component -> its group.
_OF_COMPONENT: Mapping[str, Group] = MappingProxyType(
    {
        "token_embedding": "embedding",
        "position_embedding": "embedding",
        "attention": "attention",
        "mlp": "mlp",
        "layer_norms": "norm",
        "final_norm": "norm",
        "head": "head",
    }
)


@lru_cache(maxsize=64)  # a comparison of formats asks for it once for each
def table_of_shape(shape: ModelShape) -> ParameterTable:
    """Return the parameter table of a model that is given by its sizes.

    >>> from peakmem.specs.models import model
    >>> table_of_shape(model("gpt2")).total
    124439808
    """
    tensors = parameter_tensors(shape)
    found = (Parameter(_OF_COMPONENT[tensor.component], tensor.shape) for tensor in tensors)
    return ParameterTable(shape.name, shape.name, tuple(found))


def linear(group: Group, wide: int, narrow: int, *, bias: bool) -> list[Parameter]:
    """Return a linear layer's weight (wide, narrow), and its bias (wide,) if it has one."""
    weight, offset = Parameter(group, (wide, narrow)), Parameter(group, (wide,))
    return [weight, offset] if bias else [weight]


def layer_norm(d: int) -> list[Parameter]:
    """Return the weight (d,) and the bias (d,) of a layer norm."""
    return [Parameter("norm", (d,)), Parameter("norm", (d,))]


def repeated(parameters: Iterable[Parameter], layers: int) -> list[Parameter]:
    """Return the parameters of `layers` layers, given those of one."""
    return [replace(p, copies=p.copies * layers) for p in parameters if layers]
