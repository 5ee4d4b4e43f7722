"""Copies tensors into arrays, the form in which probes return them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy.typing as npt
from torch import Tensor

__all__ = ["array_of", "arrays_of", "gradient_arrays"]

Array = npt.NDArray[Any]


def array_of(tensor: Tensor) -> Array:
    """Return a copy of the tensor's values, without its graph."""
    array: Array = tensor.detach().numpy().copy()
    return array


def arrays_of(tensors: Iterable[Tensor]) -> list[Array]:
    """Return `array_of` each tensor."""
    return list(map(array_of, tensors))


def gradient_arrays(leaves: Iterable[Tensor]) -> list[Array | None]:
    """Return each leaf's gradient as an array, or None if it has none."""
    return [None if leaf.grad is None else array_of(leaf.grad) for leaf in leaves]
