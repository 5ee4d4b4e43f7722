"""How lab 9's answers are compared: codes and steps, some of which may have any value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "FROM_MEMORY",
    "IN_PLACE",
    "Array",
    "Open",
    "OpenStep",
    "are_near",
    "same_codes",
    "same_step",
    "with_open",
]

#: Messages about functions that decode; `{}` is the function's name.
IN_PLACE = "{} changes its arguments, so it can't be called on them twice. Return a new tensor."
FROM_MEMORY = (
    "{} returns a different result after another tensor is encoded. Use only its arguments."
)

Array = npt.NDArray[Any]


class Open(float):
    """The number that the text asks for; for a channel of zeros, any finite number is right."""


class OpenStep(Open):
    """The same for a step: any step above 0 is right."""


def with_open(values: Array, are_open: Array, number: Open) -> list[float]:
    """Return the values as a flat list, with `number` in the places that are open."""
    pairs = zip(values.ravel().tolist(), are_open.ravel().tolist(), strict=True)
    return [number if is_open else value for value, is_open in pairs]


def same_codes(expected: Any, got: Any) -> bool:
    """Compare two dicts from a probe: names of types, bytes, codes, and floats up to rounding.

    If None is expected, anything is equal, because a mistake may have several forms.
    """
    return (
        isinstance(got, Mapping)
        and expected.keys() == got.keys()
        and all(_equal(expected[key], got[key]) for key in expected)
    )


def _equal(expected: Any, got: Any) -> bool:
    if expected is None:
        return True
    if isinstance(expected, (str, int)):
        return type(got) is type(expected) and bool(expected == got)
    if isinstance(expected, list):  # steps and zero points
        return (
            isinstance(got, list)
            and len(got) == len(expected)
            and all(same_step(e, g) for e, g in zip(expected, got, strict=True))
        )
    if expected.dtype.kind in "iu":
        return isinstance(got, np.ndarray) and np.array_equal(expected, got)
    return are_near(expected, got)


def same_step(expected: float, got: Any) -> bool:
    """Compare two steps, or two other numbers of a channel."""
    if not isinstance(got, (int, float)) or not abs(got) < math.inf:
        return False
    if isinstance(expected, OpenStep):
        return got > 0
    is_open = isinstance(expected, Open)
    return is_open or math.isclose(expected, got, rel_tol=1e-5, abs_tol=1e-30)


def are_near(expected: Array, got: Any, relative: float = 1e-5) -> bool:
    """Compare arrays of floats up to a share of the largest expected magnitude."""
    if not isinstance(got, np.ndarray) or got.dtype.kind not in "fiu":
        return False
    most = relative * float(np.abs(expected).max(initial=0.0))
    return expected.shape == got.shape and bool((np.abs(got - expected) <= most + 1e-30).all())
