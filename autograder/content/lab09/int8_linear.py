"""Exercise: a product of int8 codes, with outlier columns multiplied separately.

Each row of a result is compared up to a ten-thousandth of its own largest value: rounding to codes
changes it by more than that, and the order of float32 sums by far less.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.content.lab09.figures import Array, are_near
from autograder.content.one_at_a_time import one_at_a_time
from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["int8_linear", "product"]

_WITHOUT, _WITH = "without outliers", "with outliers"


def product(
    x: Array,
    q: Array,
    scale: Array,
    threshold: float,
    *,
    outliers: Callable[[Array, float], Array] | None = None,
    in_float: float = 1.0,
    step_of_all: bool = False,
    sizes: Callable[[Array], Array] = lambda x: np.abs(x).max(axis=1, keepdims=True, initial=0.0),
    whole: Callable[[Array], Array] = lambda sums: sums,
    dtype: type[np.floating[Any]] = np.float32,
) -> Array:
    """Return x times the decoded weight, transposed; options are mistakes."""
    values = x.astype(np.float64)
    apart = (outliers or _columns)(values, threshold)
    rest = np.where(apart, 0.0, values)
    largest = sizes(values if step_of_all else rest)
    step = np.where(largest == 0, 1.0, largest / 127)
    codes = np.clip(np.rint(rest / step), -127, 127).astype(np.int64)
    sums = whole(codes @ q.astype(np.int64).T)
    weight = q * scale.astype(np.float64)  # (n, k)
    result: Array = sums * step * scale.reshape(1, -1) + in_float * (values - rest) @ weight.T
    return result.astype(dtype)


def _unquantized(x: Array, q: Array, scale: Array, threshold: float) -> Array:
    result: Array = x.astype(np.float64) @ (q * scale.astype(np.float64)).T
    return result.astype(np.float32)


def _twice(x: Array, q: Array, scale: Array, threshold: float) -> Array:
    apart = _columns(x, threshold)
    return product(x, q, scale, np.inf) + _unquantized(np.where(apart, x, 0), q, scale, threshold)


def _columns(x: Array, threshold: float) -> Array:
    found: Array = np.any(np.abs(x) > threshold, axis=0)
    return found


def _never(x: Array, threshold: float) -> Array:
    return np.zeros(x.shape[1], bool)


def _wraps(sums: Array) -> Array:
    """The sums, computed in eight bits."""
    return sums.astype(np.int8).astype(np.int64)


def _signed(x: Array, threshold: float) -> Array:
    found: Array = np.any(x > threshold, axis=0)
    return found


def _from_threshold(x: Array, threshold: float) -> Array:
    found: Array = np.any(np.abs(x) >= threshold, axis=0)
    return found


def _entries(x: Array, threshold: float) -> Array:
    return np.abs(x) > threshold


def _equal(expected: Any, got: Any) -> bool:
    if not isinstance(expected, np.ndarray) or not isinstance(got, np.ndarray):
        return False
    same_form = got.shape == expected.shape and got.dtype == expected.dtype
    return same_form and all(map(_near, expected, got))


def _near(expected: Array, got: Array) -> bool:
    return are_near(expected, got, 1e-4)


def _draw(rng: np.random.Generator, outliers: int, b: int = 0, n: int = 0) -> list[Any]:
    """Draw x (b, k) with ordinary values near their codes, int8 weights (n, k), steps (n, 1)."""
    b, k, n = b or int(rng.integers(5, 9)), int(rng.integers(12, 18)), n or int(rng.integers(9, 14))
    codes = rng.integers(-126, 127, (b, k)) + rng.uniform(-0.4, 0.4, (b, k))
    columns = rng.permutation(k)
    # Each row has a largest value with a random sign in an ordinary column.
    codes[np.arange(b), columns[rng.integers(outliers, k, b)]] = 127 * rng.choice([-1, 1], b)
    x = codes * rng.uniform(0.2, 2.5, (b, 1)) / 127  # up to 2.5
    for column in columns[:outliers]:
        rows = rng.choice(b, 2, replace=False)
        # The first is the only large value in its column, whose root mean square stays small.
        x[rows[0], column] = -rng.uniform(*(8, 12) if column == columns[0] else (20, 60))
        if rng.random() < 0.5 and column != columns[0]:
            x[rows[1], column] = rng.uniform(20, 60)
    q = rng.integers(-127, 128, (n, k)).astype(np.int8)
    scale = rng.uniform(0.001, 0.02, (n, 1)).astype(np.float32)
    return [x.astype(np.float32), q, scale, 6.0]


def _turned(x: Array, q: Array, scale: Array, threshold: float) -> list[Any]:
    """Other arguments of the same shapes, to reveal anything cached from call to call."""
    return [x[::-1, ::-1].copy(), q[:, ::-1].copy(), scale, threshold]


def _cases(rng: np.random.Generator) -> list[Case]:
    without = [_draw(rng, 0) for _ in range(3)]
    with_some = [_draw(rng, count) for count in (1, 2, 3)]
    single = [_draw(rng, 0, b=1), _draw(rng, 0, n=1), _draw(rng, 0, b=1, n=1)]
    single_apart = [_draw(rng, 2, n=1)]
    zero_row = _draw(rng, 0)
    zero_row[0][1] = 0
    every = _draw(rng, 2)
    every[0] = np.where(np.abs(every[0]) < 7, 30.0, every[0]).astype(np.float32)
    high = [*_draw(rng, 1)[:3], 100.0]
    # Columns slightly below the threshold, or exactly at it, aren't outliers.
    near = _draw(rng, 2)
    first = np.argsort(np.abs(near[0]).max(axis=0))[-2:]
    near[0][:, first] *= (
        np.array([0.9, 1.0], np.float32) * near[3] / np.abs(near[0][:, first]).max(axis=0)
    )
    near[0][:, np.abs(near[0]).max(axis=0).argmin()] = near[3] / 2  # a large sum, but no outlier
    near[0][np.abs(near[0]).argmax(axis=0)[first[1]], first[1]] = near[3]
    x, q, scale, _ = with_some[0]
    apart = one_at_a_time(with_some[0], {0: x[::-1].copy(), 1: -q, 2: 2 * scale, 3: 100.0})
    x, q, scale, _ = without[0]
    alike = one_at_a_time(without[0], {0: x[::-1].copy(), 1: -q, 2: 2 * scale})
    return [
        Case((_WITHOUT,), {"calls": without}),
        Case(
            (_WITHOUT,),
            {"calls": [*without, _turned(*without[2]), zero_row, near, *single, *alike]},
        ),
        Case((_WITH,), {"calls": with_some}),
        Case(
            (_WITH,),
            {"calls": [*with_some, _turned(*with_some[2]), every, high, *single_apart, *apart]},
        ),
    ]


int8_linear = Task(
    id="lab09-int8_linear",
    parts={_WITHOUT: 2, _WITH: 2},
    defines=("int8_linear",),
    probe="int8_linear",
    cases=_cases,
    judge=by_reference(
        product,
        {
            "sums_overflow": lambda *a: product(*a, whole=_wraps),
            "one_step_for_x": lambda *a: product(*a, sizes=lambda x: np.abs(x).max(initial=0.0)),
            "never_quantized": _unquantized,
            "outliers_quantized": lambda *a: product(*a, outliers=_never),
            "outliers_dropped": lambda *a: product(*a, in_float=0.0),
            "entries_not_columns": lambda *a: product(*a, outliers=_entries),
            "sign_of_outliers": lambda *a: product(*a, outliers=_signed),
            "outliers_twice": _twice,
            "step_of_all": lambda *a: product(*a, step_of_all=True),
            "at_the_threshold": lambda *a: product(*a, outliers=_from_threshold),
            "in_float64": lambda *a: product(*a, dtype=np.float64),
        },
        equal=_equal,
        write=lambda x, q, scale, t: f"x of shape {x.shape}, q of {q.shape}, threshold={t}",
    ),
    mistakes={
        "sums_overflow": "Your sums wrap around at 127: int8 times int8 is int8 in torch. Convert "
        "the codes to int32 before you multiply.",
        "one_step_for_x": "You use one step for all of x. Each row of x has its own.",
        "never_quantized": "You never quantize x: you multiply floats.",
        "outliers_quantized": "You quantize the outliers with the other values. This makes their "
        "row's step so large that small values are lost: keep the outliers' columns in float.",
        "outliers_dropped": "Your result leaves out the outliers' columns. Add their part, "
        "computed in float with the decoded weight.",
        "entries_not_columns": "You keep individual values in float. Separate whole columns of x: "
        "a float product needs all rows of a column.",
        "sign_of_outliers": "You compare signed values. A large negative value is an outlier too.",
        "outliers_twice": "The outliers are in both parts of your sum. Take their columns out "
        "before you quantize.",
        "step_of_all": "Your rows' steps still come from all columns of x, outliers included. Take "
        "the largest of the other columns.",
        "at_the_threshold": "You treat a value that equals the threshold as an outlier. Only one "
        "above it is.",
        "in_float64": "Your result is in float64. Return float32, like x.",
    },
)
