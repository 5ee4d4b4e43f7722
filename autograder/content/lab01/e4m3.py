"""decode_e4m3: the Open Compute Project's 8-bit format with 4 exponent bits."""

from __future__ import annotations

import math

import numpy as np

from autograder.content.lab01.forbidden import NO_CASTS
from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["decode_e4m3"]


def _fields(bits: int) -> tuple[float, int, int]:
    return (-1.0 if bits & 0x80 else 1.0), bits >> 3 & 0xF, bits & 0x7


def _decode(bits: int) -> float:
    sign, exponent, mantissa = _fields(bits)
    if (exponent, mantissa) == (15, 7):
        return math.nan
    hidden = 8 if exponent else 0
    return sign * math.ldexp(hidden + mantissa, max(exponent, 1) - 10)


def _cases(rng: np.random.Generator) -> list[Case]:
    return [Case(("value",), {"calls": [[int(bits)] for bits in rng.permutation(256)]})]


def _inf_as_ieee(bits: int) -> float:
    sign, exponent, mantissa = _fields(bits)
    if exponent == 15:
        return math.nan if mantissa else sign * math.inf
    return _decode(bits)


def _top_all_nan(bits: int) -> float:
    return math.nan if bits >> 3 & 0xF == 15 else _decode(bits)


def _nan_missing(bits: int) -> float:
    return math.copysign(480.0, _fields(bits)[0]) if bits & 0x7F == 0x7F else _decode(bits)


def _bias_8(bits: int) -> float:
    return _decode(bits) / 2


def _as_e5m2(bits: int) -> float:
    sign, exponent, mantissa = (-1.0 if bits & 0x80 else 1.0), bits >> 2 & 0x1F, bits & 0x3
    if exponent == 31:
        return math.nan if mantissa else sign * math.inf
    hidden = 4 if exponent else 0
    return sign * math.ldexp(hidden + mantissa, max(exponent, 1) - 17)


def _subnormal_by_7(bits: int) -> float:
    return _decode(bits) / 2 if bits >> 3 & 0xF == 0 else _decode(bits)


def _subnormal_as_normal(bits: int) -> float:
    sign, exponent, mantissa = _fields(bits)
    if exponent or not mantissa:
        return _decode(bits)
    return sign * math.ldexp(8 + mantissa, -10)


decode_e4m3 = Task(
    id="lab01-decode_e4m3",
    parts={"value": 1},
    defines=("decode_e4m3",),
    probe="decode_e4m3",
    cases=_cases,
    judge=by_reference(
        _decode,
        {
            "inf_as_ieee": _inf_as_ieee,
            "top_all_nan": _top_all_nan,
            "nan_missing": _nan_missing,
            "bias_8": _bias_8,
            "as_e5m2": _as_e5m2,
            "subnormal_by_7": _subnormal_by_7,
            "subnormal_as_normal": _subnormal_as_normal,
            "negative_zero_lost": lambda bits: _decode(bits) + 0.0,  # -0.0 + 0.0 is 0.0
            "sign_lost": lambda bits: _decode(bits & 0x7F),
        },
        write=lambda bits: f"decode_e4m3(0b{bits:08b})",
    ),
    mistakes={
        "inf_as_ieee": "E4M3 has no infinity: exponent field 15 holds numbers up to 448, and "
        "only S.1111.111 is NaN.",
        "top_all_nan": "In E4M3, exponent field 15 isn't reserved for NaN: it holds numbers up to "
        "448, and only S.1111.111 is NaN.",
        "nan_missing": "S.1111.111 is NaN, not 480.",
        "bias_8": "The bias is 2**3 - 1 = 7, not 8.",
        "as_e5m2": "Your function reads 5 exponent bits and 2 mantissa bits, which is E5M2.",
        "subnormal_by_7": "Subnormal numbers are scaled by 2**-6, as exponent field 1 is.",
        "subnormal_as_normal": "Exponent field 0 has no leading 1.",
        "negative_zero_lost": "0b10000000 is -0.0, which Python distinguishes from 0.0.",
        "sign_lost": "Your function ignores bit 7, the sign.",
    },
    ban=NO_CASTS,
)
