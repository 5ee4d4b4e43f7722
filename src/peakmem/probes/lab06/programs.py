"""Small programs whose graphs save tensors in ways that are hard to swap correctly."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

__all__ = ["PROGRAMS", "Forward", "Program"]

Array = npt.NDArray[Any]
Forward = Callable[[], torch.Tensor]
Program = Callable[[torch.Generator], tuple[Forward, list[torch.Tensor]]]


def _drawn(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _leaf(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return _drawn(generator, *shape).requires_grad_()


def _parameter(generator: torch.Generator, *shape: int) -> nn.Parameter:
    return nn.Parameter(_drawn(generator, *shape) / shape[0] ** 0.5)


def _blocks(generator: torch.Generator) -> tuple[Forward, list[torch.Tensor]]:
    """Many equal blocks, each of which saves three tensors of the same size."""
    x = _leaf(generator, 40, 16)
    weights = [_parameter(generator, 16, 16) for _ in range(8)]

    def forward() -> torch.Tensor:
        y = x
        for weight in weights:
            y = torch.tanh(y @ weight) * torch.sigmoid(y)
        return y.sum()

    return forward, [x, *weights]


def _views(generator: torch.Generator) -> tuple[Forward, list[torch.Tensor]]:
    """A tensor, its transpose, slices and an expanded row, and a parameter's views."""
    x = _leaf(generator, 24, 24)
    weight, row = _parameter(generator, 24, 24), _leaf(generator, 1, 24)

    def forward() -> torch.Tensor:
        y = torch.exp(x / 8)
        z = (y @ y.T) * y[:, ::2].repeat(1, 2) + (y[3:9] * y[12:18]).sum() * y
        z = torch.nn.functional.linear(z, weight) @ weight[:12].T
        return (z.sum(1, keepdim=True) * (2 * row).expand(24, 24) * y.T).sum()

    return forward, [x, weight, row]


def _layouts(generator: torch.Generator) -> tuple[Forward, list[torch.Tensor]]:
    """Non-contiguous tensors, integers and booleans, and tensors with one element or none."""
    x = _leaf(generator, 6, 5, 4)
    table = _parameter(generator, 9, 4)
    at = torch.randint(0, 9, (6, 5), generator=generator)
    rows = torch.randint(0, 6, (4,), generator=generator)

    def forward() -> torch.Tensor:
        y = torch.tanh(x.permute(2, 0, 1))  # stored in another order
        z = (y * y.transpose(1, 2).reshape(4, 6, 5)).permute(1, 2, 0)
        z = z * torch.nn.functional.embedding(at, table)
        z = torch.where(z > 0, z * z, z.relu())[rows]
        nothing = torch.sigmoid(z[:0])
        return z.pow(2).sum() * torch.exp(z.mean()) + (nothing * nothing).sum()

    return forward, [x, table]


def _twice(generator: torch.Generator) -> tuple[Forward, list[torch.Tensor]]:
    """A tensor that several operators save, and a weight that every step uses."""
    x, weight = _leaf(generator, 30, 12), _parameter(generator, 12, 12)

    def forward() -> torch.Tensor:
        y = torch.sigmoid(x)
        for _ in range(3):
            y = y * y + torch.tanh(y @ weight.t()) * y
        return (y * y).mean()

    return forward, [x, weight]


_TRIES = 100  # to get the same id


class _Memory:
    """Memory for arrays of one shape, which reuses an array as soon as nothing references it.

    A new storage also gets the id of an earlier one, if possible.
    """

    def __init__(self) -> None:
        self._lent: list[tuple[Array, weakref.ref[Array]]] = []
        self._ids: set[int] = set()

    def copy_of(self, values: Array) -> torch.Tensor:
        free = (i for i, (_, borrower) in enumerate(self._lent) if borrower() is None)
        place = next(free, None)
        whole = np.empty_like(values) if place is None else self._lent.pop(place)[0]
        loan = whole.view()  # the tensor's storage references it until the storage is freed
        loan[...] = values
        self._lent.append((whole, weakref.ref(loan)))
        return self._with_an_id(loan)

    def _with_an_id(self, loan: Array) -> torch.Tensor:
        tensor = torch.from_numpy(loan)
        others: list[torch.Tensor] = []  # kept alive, so that each has a different id
        while id(tensor.untyped_storage()) not in self._ids and len(others) < _TRIES:
            others.append(tensor)
            tensor = torch.from_numpy(loan)
        self._ids.add(id(tensor.untyped_storage()))
        return tensor


def _frozen(generator: torch.Generator) -> tuple[Forward, list[torch.Tensor]]:
    """A parameter that doesn't require a gradient, and a view of it."""
    x, weight = _leaf(generator, 12, 10), _parameter(generator, 10, 10).requires_grad_(False)

    def forward() -> torch.Tensor:
        y = torch.tanh(x @ weight)
        return torch.exp(y @ weight.t()).sum()

    return forward, [x, weight]


def _reused(generator: torch.Generator) -> tuple[Forward, list[torch.Tensor]]:
    """Constants in sequence, each in its predecessor's memory if that was released."""
    x = _leaf(generator, 16, 8)
    constants = [_drawn(generator, 16, 8).numpy() for _ in range(12)]
    memory = _Memory()

    def forward() -> torch.Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for constant in constants:
            total = total + (memory.copy_of(constant) * x).sum()  # saves the constant for x
        return total

    return forward, [x]


PROGRAMS: Mapping[str, Program] = {
    "reused": _reused,
    "blocks": _blocks,
    "views": _views,
    "layouts": _layouts,
    "twice": _twice,
    "retain": _twice,
    "dropped": _blocks,
    "two_hosts": _blocks,
    "frozen": _frozen,
    "within": _twice,
}
