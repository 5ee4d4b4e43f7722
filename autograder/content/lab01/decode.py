"""decode_fp32: from a binary32's bits to its value."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np

from autograder.content.lab01.forbidden import NO_CASTS
from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["decode_fp32", "fp32_value"]

_SIGN = 0x8000_0000
_INF = 0x7F80_0000
_MAX = 0x7F7F_FFFF


def _case(part: str, patterns: Sequence[int], *, fixed: bool = False) -> Case:
    return Case((part,), {"calls": [[bits] for bits in patterns]}, fixed=fixed)


def fp32_value(bits: int) -> float:
    """Return the value of a binary32's bits."""
    value: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    return value


def _cases(rng: np.random.Generator) -> list[Case]:
    def patterns(low: int, high: int, count: int) -> list[int]:
        magnitudes = rng.integers(low, high, count)
        signs = rng.integers(0, 2, count) * _SIGN
        return [int(bits) for bits in magnitudes + signs]

    def both(*magnitudes: int) -> list[int]:
        return [m | sign for m in magnitudes for sign in (0, _SIGN)]

    zeros = [0, _SIGN]
    specials = [*both(_INF), *patterns(_INF + 1, _SIGN, 20), *both(_INF + 1, _SIGN - 1)]
    powers = (0x0080_0000, 0x3F80_0000, 0x7F00_0000)  # fraction 0, as in infinity and zero
    return [
        _case("normal", patterns(0x0080_0000, _INF, 150)),
        _case("normal", both(0x3E88_0000, 0x3E20_0000, *powers, _MAX), fixed=True),
        _case("subnormal", patterns(1, 0x0080_0000, 50)),
        _case("subnormal", both(1, 2, 0x0040_0000, 0x007F_FFFF), fixed=True),
        _case("zeros", zeros),
        _case("inf and NaN", specials),
    ]


def _fields(bits: int) -> tuple[float, int, float]:
    """(-1)**sign, the exponent field, the fraction in [0, 1)."""
    return (-1.0 if bits & _SIGN else 1.0), bits >> 23 & 0xFF, (bits & 0x7F_FFFF) / 2**23


def _no_hidden_one(bits: int) -> float:
    sign, exponent, fraction = _fields(bits)
    return sign * math.ldexp(fraction, exponent - 127) if 0 < exponent < 255 else fp32_value(bits)


def _bias_128(bits: int) -> float:
    sign, exponent, fraction = _fields(bits)
    if exponent == 255:
        return fp32_value(bits)
    hidden = 1 if exponent else 0
    return sign * math.ldexp(hidden + fraction, max(exponent, 1) - 128)


def _fraction_reversed(bits: int) -> float:
    mirrored = int(f"{bits & 0x7F_FFFF:023b}"[::-1], 2)
    return fp32_value((bits & ~0x7F_FFFF) | mirrored)


def _subnormal_by_127(bits: int) -> float:
    sign, exponent, fraction = _fields(bits)
    return sign * math.ldexp(fraction, -127) if exponent == 0 else fp32_value(bits)


def _subnormal_as_normal(bits: int) -> float:
    sign, exponent, fraction = _fields(bits)
    return sign * math.ldexp(1 + fraction, -127) if exponent == 0 else fp32_value(bits)


def _subnormals_are_zero(bits: int) -> float:
    sign, exponent, _ = _fields(bits)
    return sign * 0.0 if exponent == 0 else fp32_value(bits)


def _specials_as_normal(bits: int) -> float:
    sign, exponent, fraction = _fields(bits)
    return sign * math.ldexp(1 + fraction, 128) if exponent == 255 else fp32_value(bits)


def _nan_as_inf(bits: int) -> float:
    sign, exponent, _ = _fields(bits)
    return sign * math.inf if exponent == 255 else fp32_value(bits)


def _sign_of_inf_lost(bits: int) -> float:
    return abs(fp32_value(bits)) if bits & _INF == _INF else fp32_value(bits)


decode_fp32 = Task(
    id="lab01-decode_fp32",
    parts={"normal": 1, "subnormal": 1, "zeros": 1, "inf and NaN": 1},
    defines=("decode_fp32",),
    probe="decode_fp32",
    cases=_cases,
    judge=by_reference(
        fp32_value,
        {
            "no_hidden_one": _no_hidden_one,
            "fraction_reversed": _fraction_reversed,
            "subnormal_by_127": _subnormal_by_127,
            "bias_128": _bias_128,
            "subnormal_as_normal": _subnormal_as_normal,
            "subnormals_are_zero": _subnormals_are_zero,
            "specials_as_normal": _specials_as_normal,
            "nan_is_inf": _nan_as_inf,
            "negative_zero_lost": lambda bits: fp32_value(bits) + 0.0,  # -0.0 + 0.0 is 0.0
            "sign_of_inf_lost": _sign_of_inf_lost,
            "sign_lost": lambda bits: fp32_value(bits & ~_SIGN),
        },
        write=lambda bits: f"decode_fp32(0x{bits:08X})",
    ),
    mistakes={
        "no_hidden_one": "The leading 1 is missing: a normal number is (1 + fraction) times its "
        "power of two, though only the fraction is stored.",
        "fraction_reversed": "You weight the fraction's bits in reverse: the highest, bit 22, is "
        "worth 1/2, and the lowest, bit 0, is worth 2**-23.",
        "subnormal_by_127": "Subnormal numbers are scaled by 2**-126, not 2**-127: exponent "
        "fields 0 and 1 share a power of two, so there is no gap between them.",
        "bias_128": "The bias is 127, not 128: an exponent field of 127 stands for 2**0.",
        "subnormal_as_normal": "An exponent field of 0 has no leading 1: the value is the fraction "
        "alone times 2**-126.",
        "subnormals_are_zero": "An exponent field of 0 means zero only if the fraction is also 0. "
        "With any other fraction it is a subnormal number, fraction * 2**-126.",
        "specials_as_normal": "An exponent field of 255 doesn't stand for a power of two: with "
        "fraction 0 it means infinity, with any other fraction NaN.",
        "nan_is_inf": "An exponent field of 255 means infinity only if the fraction is 0. With "
        "any other fraction it means NaN.",
        "negative_zero_lost": "The pattern 0x80000000 is -0.0, which Python distinguishes from "
        "0.0: math.copysign(1, -0.0) is -1.0.",
        "sign_of_inf_lost": "Infinity has a sign too: 0xFF800000 is -inf.",
        "sign_lost": "Your function ignores bit 31, the sign.",
    },
    ban=NO_CASTS,
)
