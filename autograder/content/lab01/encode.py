"""encode_fp32: from a value to the bits of the nearest binary32."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograder.content.lab01.decode import fp32_value
from autograder.content.lab01.forbidden import NO_CASTS
from autograder.model.compare import by_reference, show, whole
from autograder.model.task import Case, Task

__all__ = ["encode_fp32"]

_SIGN = 0x8000_0000
_INF = 0x7F80_0000
_MAX = 0x7F7F_FFFF
_LARGEST = 2.0**128 - 2.0**104


def _case(part: str, values: Sequence[float], *, fixed: bool = False) -> Case:
    return Case((part,), {"calls": [[x] for x in values]}, fixed=fixed)


def _encode(x: float) -> int:
    with np.errstate(over="ignore", under="ignore"):
        return int(np.float32(x).view(np.uint32))


def _same_bits(expected: Any, got: Any) -> bool:
    if isinstance(expected, int) and expected & ~_SIGN > _INF:
        return type(got) is int and 0 <= got < 2**32 and got & ~_SIGN > _INF
    return whole()(expected, got)


def _pattern(bits: Any) -> str:
    return f"0x{bits:08X}" if type(bits) is int and abs(bits) < 2**64 else show(bits)


def _cases(rng: np.random.Generator) -> list[Case]:
    def signed(*magnitudes: float) -> list[float]:
        return [sign * float(m) for m in magnitudes for sign in (1.0, -1.0)]

    def values(low: int, high: int, count: int) -> list[float]:
        return [fp32_value(int(bits)) for bits in rng.integers(low, high, count)]

    def between(below: Sequence[float]) -> list[float]:
        """From each gap above `below`: its middle, the floats next to it, and a random point."""
        found: list[float] = []
        for low in below:
            high = fp32_value(_encode(low) + 1) if low < _LARGEST else 2.0**128
            middle = low + (high - low) / 2
            found += [middle, math.nextafter(middle, 0), math.nextafter(middle, math.inf)]
            found.append(low + (high - low) * float(rng.random()))
        return found

    carry = [fp32_value(bits) for bits in (0x3FFF_FFFF, 0x3F7F_FFFF, 0x3F80_0000, 0x3F80_0001)]
    edges = [fp32_value(bits) for bits in (_MAX, _MAX - 1, 0, 1, 0x007F_FFFE, 0x007F_FFFF)]
    far = [1e39, 1e300, 2.0**128, 1.5 * 2.0**128, 1.7e308, 1e-46, 1e-300, 5e-324]
    exact = [1.0, 0.265625, 0.15625, 2.0**-126, 3.0, _LARGEST]
    return [
        _case("exact", signed(*values(0x0080_0000, _INF, 30))),
        _case("exact", signed(*exact), fixed=True),
        _case("inexact and ties", signed(*between(values(0x0080_0000, _MAX, 16)))),
        _case("inexact and ties", signed(*between(carry)), fixed=True),
        _case(
            "overflow and underflow",
            signed(*between(values(1, 0x0080_0000, 8)), *values(1, 0x0080_0000, 8))
            + signed(*(2.0 ** rng.uniform(128, 1023, 5)), *(2.0 ** rng.uniform(-1070, -150, 5))),
        ),
        _case("overflow and underflow", signed(*between(edges), *far, *edges[1:]), fixed=True),
        # A NaN made by arithmetic isn't `math.nan` itself, so `x is math.nan` doesn't recognise it.
        _case("zeros, inf and NaN", [0.0, -0.0, math.inf, -math.inf, math.inf - math.inf]),
    ]


def _exact(bits_of_magnitude: Callable[[float], int]) -> Callable[[float], int]:
    """Extend an encoder of finite positive floats to all floats, without handling overflow."""

    def encode(x: float) -> int:
        if x == 0 or not math.isfinite(x):
            return _encode(x)
        return (_SIGN if x < 0 else 0) | bits_of_magnitude(abs(x))

    return encode


def _rounded(magnitude: float, to_integer: Callable[[float], int]) -> int:
    """The pattern of a magnitude whose significand is rounded by `to_integer`.

    If a significand rounds up to 2.0, its carry increments the exponent field by itself.
    """
    exponent = max(math.frexp(magnitude)[1] - 1, -126)
    if exponent > 127:
        return _INF
    return (exponent + 126 << 23) + to_integer(math.ldexp(magnitude, 23 - exponent))


def _half_away(y: float) -> int:
    return math.floor(y) + (y - math.floor(y) >= 0.5)


def _half_down(y: float) -> int:
    return math.floor(y) + (y - math.floor(y) > 0.5)


@_exact
def _carry_lost(magnitude: float) -> int:
    exponent = math.frexp(magnitude)[1] - 1
    if not -126 <= exponent < 128:
        return _encode(magnitude)
    significand = round(math.ldexp(magnitude, 23 - exponent))
    return (exponent + 127) << 23 | significand & 0x7F_FFFF


@_exact
def _saturates(magnitude: float) -> int:
    return min(_encode(magnitude), _MAX)


@_exact
def _inf_above_max(magnitude: float) -> int:
    return _INF if magnitude > _LARGEST else _encode(magnitude)


@_exact
def _subnormals_flushed(magnitude: float) -> int:
    return 0 if magnitude < 2.0**-126 else _encode(magnitude)


@_exact
def _smallest_flushed(magnitude: float) -> int:
    return 0 if magnitude < 2.0**-149 else _encode(magnitude)


@_exact
def _by_127(magnitude: float) -> int:
    if magnitude >= 2.0**-126:
        return _encode(magnitude)
    return min(round(math.ldexp(magnitude, 150)), 0x7F_FFFF)


@_exact
def _bias_128(magnitude: float) -> int:
    if not 2.0**-126 <= magnitude < 2.0**128:
        return _encode(magnitude)
    return _encode(magnitude) + (1 << 23)


def _zero_by_frexp(x: float) -> int:
    return _encode(x) + (125 << 23) if x == 0 else _encode(x)


def _nan_as_inf(x: float) -> int:
    return _INF if math.isnan(x) else _encode(x)


encode_fp32 = Task(
    id="lab01-encode_fp32",
    stretch=True,
    parts={
        "exact": 1,
        "inexact and ties": 1,
        "overflow and underflow": 1,
        "zeros, inf and NaN": 1,
    },
    defines=("encode_fp32",),
    probe="encode_fp32",
    cases=_cases,
    judge=by_reference(
        _encode,
        {
            "truncates": _exact(lambda m: _rounded(m, math.floor)),
            "ties_away": _exact(lambda m: _rounded(m, _half_away)),
            "adds_half": _exact(lambda m: _rounded(m, lambda y: int(y + 0.5))),
            "ties_toward_zero": _exact(lambda m: _rounded(m, _half_down)),
            "carry_lost": _carry_lost,
            "saturates": _saturates,
            "inf_above_max": _inf_above_max,
            "subnormals_flushed": _subnormals_flushed,
            "smallest_flushed": _smallest_flushed,
            "subnormal_by_127": _by_127,
            "bias_128": _bias_128,
            "negative_zero_lost": lambda x: 0 if x == 0 else _encode(x),
            "zero_by_frexp": _zero_by_frexp,
            "nan_is_inf": _nan_as_inf,
            "sign_lost": lambda x: _encode(abs(x)),
        },
        equal=_same_bits,
        write=lambda x: f"encode_fp32({x!r})",
        form=_pattern,
    ),
    mistakes={
        "truncates": "Your code cuts off the extra bits. Return the nearest fp32 number, which is "
        "just as often the one above.",
        "ties_away": "Halfway between two fp32 numbers, your function takes the one farther from "
        "zero. The rule is ties to even: take the one whose last bit is 0.",
        "adds_half": "int(y + 0.5) rounds every tie up. Because y + 0.5 is itself rounded, it "
        "also rounds up some numbers just below a tie. The rule is ties to even, as in round(y).",
        "ties_toward_zero": "Halfway between two fp32 numbers, your function takes the one closer "
        "to zero. The rule is ties to even: take the one whose last bit is 0.",
        "carry_lost": "A significand that rounds up to 2.0 must add 1 to the exponent; your "
        "function loses this carry and returns half the value.",
        "saturates": "Above the largest fp32 number, your function returns that number. From "
        "2**128 - 2**103 on, half a gap above the largest, round-to-nearest-even gives infinity.",
        "inf_above_max": "Your function returns infinity for anything above the largest fp32 "
        "number. Less than half a gap above it, that number is still the nearest.",
        "subnormals_flushed": "Numbers below 2**-126 are not zero yet: down to 2**-149 they are "
        "subnormal, with exponent field 0 and no leading 1.",
        "smallest_flushed": "Below the smallest number, 2**-149, your function always returns 0. "
        "A value above half of it, 2**-150, is closer to the smallest number than to 0.",
        "subnormal_by_127": "Subnormal numbers are counted in steps of 2**-149 = 2**-126 / 2**23, "
        "not 2**-150.",
        "bias_128": "The bias is 127, not 128: 1.0 has the exponent field 127.",
        "negative_zero_lost": "-0.0 == 0.0 is True, but -0.0 has its own pattern, 0x80000000. "
        "math.copysign(1.0, x) tells them apart.",
        "zero_by_frexp": "Zero has no leading 1 and no power of two: math.frexp(0.0) is (0.0, 0). "
        "Handle it separately; its pattern is the sign bit alone.",
        "nan_is_inf": "NaN needs a nonzero fraction; with fraction 0 the pattern is infinity.",
        "sign_lost": "You don't write the sign to bit 31.",
    },
    ban=NO_CASTS,
)
