"""flushed_fraction and best_scale: what float16's range does to gradients, unscaled and scaled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from autograder.model.compare import by_reference, same
from autograder.model.task import Case, Task

__all__ = ["best_scale", "flushed_fraction"]

Arrays = Sequence[npt.NDArray[np.float32]]

# A value of at most half the smallest subnormal rounds to 0; the tie goes to the even code, 0.
_ROUNDS_TO_ZERO = {"float16": 2.0**-25, "bfloat16": 2.0**-134}

_UNKNOWN = ("float12", "float32", "float", "fp16", "Float16", "torch.float16", "bfloat16 ")

_OVERFLOWS = 65520.0  # half a gap above 65504, the largest number, so it rounds to inf


def _all(grads: Arrays) -> npt.NDArray[np.float64]:
    """All absolute values, in float64, where none of the scales used here rounds."""
    flat = [np.empty(0), *(g.astype(np.float64).ravel() for g in grads)]
    values: npt.NDArray[np.float64] = np.abs(np.concatenate(flat))
    return values


def _fraction(grads: Arrays, dtype: str, scale: float) -> float:
    if dtype not in _ROUNDS_TO_ZERO:
        raise ValueError(dtype)
    values = _all(grads)
    nonzero = values[values > 0]
    if not len(nonzero):
        return 0.0
    return float(np.mean(nonzero * scale <= _ROUNDS_TO_ZERO[dtype]))


def _below(smallest: Mapping[str, float]) -> Callable[[Arrays, str, float], float]:
    """Take everything below a number of the format for 0."""

    def mutant(grads: Arrays, dtype: str, scale: float) -> float:
        nonzero = _all(grads)[_all(grads) > 0]
        return float(np.mean(nonzero * scale < smallest[dtype])) if len(nonzero) else 0.0

    return mutant


def _with_overflow(grads: Arrays, dtype: str, scale: float) -> float:
    nonzero = _all(grads)[_all(grads) > 0]
    lost = nonzero * scale <= _ROUNDS_TO_ZERO[dtype]
    if dtype == "float16":
        lost |= nonzero * scale >= _OVERFLOWS
    return float(np.mean(lost)) if len(nonzero) else 0.0


def _casts_first(grads: Arrays, dtype: str, scale: float) -> float:
    low = torch.from_numpy(_all(grads)[_all(grads) > 0]).float().to(getattr(torch, dtype))
    return float((low * scale == 0).double().mean()) if len(low) else 0.0


def _with_zeros(grads: Arrays, dtype: str, scale: float) -> float:
    values = _all(grads)
    _fraction(grads, dtype, scale)
    return float(np.mean(values * scale <= _ROUNDS_TO_ZERO[dtype])) if len(values) else 0.0


def _of_all(grads: Arrays, dtype: str, scale: float) -> float:
    values = _all(grads)
    return _fraction(grads, dtype, scale) * float((values > 0).mean()) if len(values) else 0.0


def _mean_of_tensors(grads: Arrays, dtype: str, scale: float) -> float:
    each = [_fraction([grad], dtype, scale) for grad in grads]
    return float(np.mean(each)) if each else _fraction(grads, dtype, scale)


def _float_close(expected: Any, got: Any) -> bool:
    """Equal up to rounding: a mean may have been computed in float32."""
    if type(got) not in (int, float) or math.isnan(expected):
        return same(expected, got)
    return abs(got) <= 100 and math.isclose(expected, got, rel_tol=1e-5, abs_tol=1e-9)


def _draw(rng: np.random.Generator, low: float, high: float) -> list[npt.NDArray[np.float32]]:
    """Four tensors of unequal shapes: signed values from 2^low to 2^high, and some zeros."""
    grads = []
    for shape in ((7, 5), (int(rng.integers(60, 90)),), (2, 3, 4), ()):
        values = rng.choice([-1, 1], shape) * 2.0 ** rng.uniform(low, high, shape)
        grads.append(np.asarray(np.where(rng.random(shape) < 0.2, 0.0, values), np.float32))
    return grads


def _flushed_cases(rng: np.random.Generator) -> list[Case]:
    drawn = [_draw(rng, -34, -12) for _ in range(3)]
    scales = [1.0, 2.0 ** int(rng.integers(2, 9)), 2.0 ** -int(rng.integers(2, 6))]
    fp16 = [[g, "float16", s] for g, s in zip(drawn, scales, strict=True)]
    bf16 = [[_draw(rng, -34, -12), "bfloat16", 1.0], [_draw(rng, -33, -5), "bfloat16", 0.5]]
    bf16 += [[_draw(rng, -140, -128), "bfloat16", scale] for scale in (1.0, 4.0)]
    bf16.append([_draw(rng, -145, -100), "bfloat16", 2.0**-20])  # some products are 0 in float32
    # Some values are inf after the cast. float16 can represent only the first of these scales.
    large = [[_draw(rng, -30, 14), "float16", 2.0**8], [_draw(rng, -50, 10), "float16", 2.0**17]]
    nothing = [[np.zeros(5, np.float32)], []]
    empty = [[grads, dtype, 8.0] for grads in nothing for dtype in _ROUNDS_TO_ZERO]
    edge = np.array([2.0**-25, 1.001 * 2.0**-25, -(2.0**-24), 1.5 * 2.0**-20, 0.0], np.float32)
    uneven = [edge, np.full((30,), 2.0**-30, np.float32)]
    # Ties of bfloat16, and a single value.
    others = [[[np.ldexp(edge, -109)], "bfloat16", scale] for scale in (1.0, 2.0, 64.0)]
    others.append([[edge[:1]], "float16", 1.0])
    return [
        Case(("value",), {"calls": fp16}),
        Case(("value",), {"calls": [*fp16, *bf16]}),
        Case(("value",), {"calls": [*fp16, *large]}),
        Case(("value",), {"calls": [*fp16, *bf16, *empty]}),
        Case(
            ("value",),
            {"calls": [*fp16, *([drawn[0], name, 1.0] for name in _UNKNOWN), [[], "float32", 1.0]]},
        ),
        Case(
            ("value",),
            {"calls": [*([uneven, "float16", s] for s in (1.0, 2.0, 0.5, 64.0)), *others]},
            fixed=True,
            about="values are so small that they just round to 0, or just don't.",
        ),
    ]


def _guarded(wrong: Callable[[Arrays, str, float], float]) -> Callable[[Arrays, str, float], float]:
    """A mutant that refuses an unknown dtype as the reference does."""

    def mutant(grads: Arrays, dtype: str, scale: float) -> float:
        _fraction(grads, dtype, scale)
        return wrong(grads, dtype, scale)

    return mutant


def _divides(grads: Arrays, dtype: str, scale: float) -> float:
    if dtype in _ROUNDS_TO_ZERO and not _all(grads).any():
        raise ZeroDivisionError("division by zero")
    return _fraction(grads, dtype, scale)


def _nan_where_none(grads: Arrays, dtype: str, scale: float) -> float:
    return _fraction(grads, dtype, scale) if _all(grads).any() else math.nan


flushed_fraction = Task(
    id="lab07-flushed_fraction",
    parts={"value": 2},
    defines=("flushed_fraction",),
    probe="flushed_fraction",
    cases=_flushed_cases,
    judge=by_reference(
        _fraction,
        {
            "counts_zeros": _guarded(_with_zeros),
            "share_of_all": _guarded(_of_all),
            "mean_of_tensors": _guarded(_mean_of_tensors),
            "scale_ignored": lambda g, d, s: _fraction(g, d, 1.0),
            "casts_first": _guarded(_casts_first),
            "divides_by_scale": lambda g, d, s: _fraction(g, d, 1 / s),
            "below_normal": _guarded(_below({"float16": 2.0**-14, "bfloat16": 2.0**-126})),
            "smallest_positive": _guarded(_below({"float16": 2.0**-24, "bfloat16": 2.0**-133})),
            "overflow_counted": _guarded(_with_overflow),
            "survivors": _guarded(lambda g, d, s: 1 - _fraction(g, d, s)),
            "always_float16": _guarded(lambda g, d, s: _fraction(g, "float16", s)),
            "percent": lambda g, d, s: 100 * _fraction(g, d, s),
            "divides_by_zero": _divides,
            "nan_where_none": _guarded(_nan_where_none),
        },
        equal=_float_close,
    ),
    mistakes={
        "counts_zeros": "Your function counts gradients that were already 0. Only nonzero "
        "gradients can be flushed.",
        "share_of_all": "Your share is over all values. Divide by the number of nonzero values.",
        "mean_of_tensors": "Your result is the mean of the tensors' shares. Tensors differ in "
        "size: count over all of them together.",
        "scale_ignored": "Your function doesn't scale. Multiply by `scale` first.",
        "casts_first": "Your function casts before it scales, so small values are 0 already. "
        "Multiply by `scale` first, in float32.",
        "divides_by_scale": "Your function divides by the scale. Multiply.",
        "below_normal": "Your function counts values below the smallest *normal* number. Subnormal "
        "numbers still hold a value: count the values that become 0.",
        "smallest_positive": "Your function treats everything below the smallest positive number "
        "as 0. Half of it is the limit: values above that round up.",
        "overflow_counted": "Your function counts values that overflow. They become inf, not 0.",
        "survivors": "You return the share of values that survive. Return the share that is "
        "flushed to 0.",
        "always_float16": "Your function always casts to float16, even if the dtype is bfloat16.",
        "percent": "Your share is in percent. Return a number from 0 to 1.",
        "divides_by_zero": "If no value is nonzero, your function divides by 0. Return 0.0.",
        "nan_where_none": "If no value is nonzero, your function returns NaN. Return 0.0.",
    },
)


# best_scale
_EXPONENTS = range(-24, 25)


def _best(largest: float, fits: Callable[[float], bool] = lambda x: x < _OVERFLOWS) -> float:
    return 2.0 ** max((e for e in _EXPONENTS if fits(largest * 2.0**e)), default=-24)


def _largest(grads: Arrays) -> float:
    return float(_all(grads).max(initial=0.0))


def _best_scale(grads: Arrays) -> float:
    return _best(_largest(grads))


def _signed(grads: Arrays) -> float:
    return _best(max((float(g.max(initial=0.0)) for g in grads), default=0.0))


def _scale_cases(rng: np.random.Generator) -> list[Case]:
    def single(value: float) -> list[Any]:
        return [[np.array([value, 0.0], np.float32)]]

    drawn = []
    for top, place in ((-8, 1), (3, 0), (14, 2), (25, 1)):
        grads = [np.asarray(grad / 64) for grad in _draw(rng, top - 12, top)]
        # The largest is negative, and all other values are far smaller.
        grads[place].reshape(-1)[-2] = -(2.0**top * rng.uniform(1.1, 1.9))
        drawn.append([grads])
    corners: list[Any] = [[[np.zeros(3, np.float32)]], [[]], single(1e-9)]
    drawn.append([[np.full((40, 8), 3.0, np.float32)]])  # the norm is far above the largest value
    edges = [65504.0, 65512.0, 65519.0, 65520.0, -65520.0, 65536.0, 65504 * 2.0**-9, 2.0**39]
    edges.append(float(np.nextafter(np.float32(65520), np.float32(0))))
    return [
        Case(("value",), {"calls": drawn}),
        Case(("value",), {"calls": [*drawn, *corners]}),
        Case(
            ("value",),
            {"calls": [single(v) for v in edges]},
            fixed=True,
            about="the largest value is just above or below one that float16 still holds, or so "
            "large that it needs the smallest scale. Don't compute the limit: cast, and look for "
            "inf.",
        ),
    ]


best_scale = Task(
    id="lab07-best_scale",
    parts={"value": 1},
    defines=("best_scale",),
    probe="best_scale",
    cases=_scale_cases,
    judge=by_reference(
        _best_scale,
        {
            "signs_forgotten": _signed,
            "first_tensor_only": lambda grads: _best_scale(grads[:1]),
            "last_tensor_only": lambda grads: _best_scale(grads[-1:]),
            "no_power_of_two": lambda grads: (
                min(2.0**24, 65504 / _largest(grads)) if _largest(grads) else 2.0**24
            ),
            "at_most_65504": lambda grads: _best(_largest(grads), lambda x: x <= 65504),
            "one_too_small": lambda grads: _best(_largest(grads), lambda x: 2 * x < _OVERFLOWS),
            "one_too_large": lambda grads: _best(_largest(grads), lambda x: x / 2 < _OVERFLOWS),
            "never_below_1": lambda grads: max(1.0, _best_scale(grads)),
            "exponent": lambda grads: math.log2(_best_scale(grads)),
        },
    ),
    mistakes={
        "signs_forgotten": "Your function looks at the largest value with its sign. A large "
        "negative gradient overflows too: take absolute values.",
        "first_tensor_only": "Your function looks at the first tensor only.",
        "last_tensor_only": "Your function looks at the last tensor only.",
        "no_power_of_two": "Your scale isn't a power of two. Round down to a power of two, which "
        "multiplies without rounding.",
        "at_most_65504": "Your function treats everything above 65504 as an overflow. Below 65520 "
        "a value still rounds down to 65504: cast, and check whether it is finite.",
        "one_too_small": "Your scale is half of what fits.",
        "one_too_large": "Your scale is twice what fits: the largest gradient becomes inf.",
        "never_below_1": "Your scale is never below 1. Gradients of 65520 or more need a smaller "
        "one, down to 2^-24.",
        "exponent": "Your result is the exponent. Return the scale itself, 2 ** exponent.",
    },
)
