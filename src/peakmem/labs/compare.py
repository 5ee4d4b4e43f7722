"""Equality as self-checks and judges understand it, in one place so that both always agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["close", "differing", "same", "show", "whole"]

_EQUAL = {bool, int, str}  # these compare by ==; most answers are of such types


def same(expected: Any, got: Any) -> bool:
    """Tell whether two plain values are equal to a grader: by value, like == and self-checks.

    Numbers compare exactly, whatever their type: 2.0 counts as 2, and 1 as True. But if a float is
    expected, -0.0 differs from 0.0, and NaN equals NaN. Lists, tuples and arrays of the same values
    are equal; dicts need exactly the same keys.

    >>> same((1, 2.0), [1.0, 2]), same(True, 1), same(0.0, -0.0)
    (True, True, False)
    """
    if type(expected) is type(got) and type(expected) in _EQUAL:
        return bool(expected == got)
    if isinstance(expected, np.ndarray) and isinstance(got, np.ndarray):
        return _same_arrays(expected, got)
    expected, got = _unwrap(expected), _unwrap(got)
    if isinstance(expected, float):
        return isinstance(got, (int, float)) and _same_floats(expected, got)
    if isinstance(expected, int):
        return isinstance(got, (int, float)) and expected == got
    if isinstance(expected, (dict, list)):
        return _same_items(expected, got, same)
    return type(expected) is type(got) and expected == got


def _same_items(
    expected: dict[Any, Any] | list[Any], got: Any, equal: Callable[[Any, Any], bool]
) -> bool:
    """Whether another dict has the same keys and equal items, or another list equal ones."""
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and expected.keys() == got.keys()
            and all(equal(expected[key], got[key]) for key in expected)
        )
    return isinstance(got, list) and len(expected) == len(got) and all(map(equal, expected, got))


def whole(equal: Callable[[Any, Any], bool] = same) -> Callable[[Any, Any], bool]:
    """Return `equal` for an exercise that asks for whole numbers: no float counts as one.

    Its self-check has to refuse floats as well.
    """
    return lambda expected, got: equal(expected, got) and not _has_float_for_int(expected, got)


def close(relative: float, absolute: float = 0.0) -> Callable[[Any, Any], bool]:
    """Return an equality for floats, which correct computations may round differently.

    >>> close(1e-6)([1.0, 2], (1.0000001, 2)), close(1e-6)(1.0, 1.1)
    (True, False)
    """

    def equal(expected: Any, got: Any) -> bool:
        expected, got = _unwrap(expected), _unwrap(got)
        if isinstance(expected, (dict, list)):
            return _same_items(expected, got, equal)
        if isinstance(expected, (int, float)) and isinstance(got, (int, float)):
            return same(expected, got) or math.isclose(
                expected, got, rel_tol=relative, abs_tol=absolute
            )
        return same(expected, got)

    return equal


def differing(expected: Any, got: Any, equal: Callable[[Any, Any], bool] = same) -> tuple[Any, Any]:
    """Return two dicts' items that aren't equal; other values unchanged.

    >>> differing({"a": 1, "b": 2}, {"a": 1, "b": 3})
    ({'b': 2}, {'b': 3})
    """
    if not (isinstance(expected, dict) and isinstance(got, dict)):
        return expected, got
    alike = {key for key in expected.keys() & got.keys() if equal(expected[key], got[key])}
    return (
        {key: value for key, value in expected.items() if key not in alike},
        {key: value for key, value in got.items() if key not in alike},
    )


def _has_float_for_int(expected: Any, got: Any) -> bool:
    """Whether a float stands for an int in two values that are otherwise the same."""
    if type(expected) in _EQUAL and type(got) in _EQUAL:
        return False
    expected, got = _unwrap(expected), _unwrap(got)
    if isinstance(expected, dict):
        return any(_has_float_for_int(expected[key], got[key]) for key in expected)
    if isinstance(expected, list):
        return any(map(_has_float_for_int, expected, got))
    return isinstance(got, float) and not isinstance(expected, float)


def _unwrap(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return list(value)
    return set(value) if isinstance(value, frozenset) else value


def _same_floats(expected: float, got: float) -> bool:
    if math.isnan(expected):
        return got != got  # math.isnan refuses numbers too large for a float
    if expected == 0 == got:
        return math.copysign(1, expected) == math.copysign(1, got)
    return expected == got


def _same_arrays(expected: np.ndarray, got: np.ndarray) -> bool:
    if expected.shape != got.shape:
        return False
    if expected.dtype.kind in "iu" and got.dtype.kind in "iu":
        return bool((expected == got).all())
    return same(expected.tolist(), got.tolist())


def show(value: Any, limit: int = 120) -> str:
    """Return a value as a student would write it, cut to `limit` characters."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python refuses to write integers of over 4300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= limit else text[: limit - 3] + "..."
