"""to_bf16: whole arrays of binary32 rounded to bfloat16, as integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autograder.content.lab01.forbidden import NO_CASTS_NO_LOOPS
from autograder.model.compare import are_outcomes, by_reference, same
from autograder.model.task import Answer, Case, Finding, Task

__all__ = ["to_bf16"]

Bits32 = NDArray[np.uint32]
Bits16 = NDArray[np.uint16]

_UPPER: Bits32 = np.arange(2**16, dtype=np.uint32) << np.uint32(16)
_SPECIAL = (_UPPER & 0x7F80_0000) == 0x7F80_0000
_FINITE = _UPPER[~_SPECIAL]
_ENDS = [sign | bits << 16 for sign in (0, 2**31) for bits in (0, 1, 0x7F, 0x80, 0x7F7F)]
# Every sign and exponent, with a fifth of its significands: all of them would use up a third of the
# size that a notebook's answers may have. The ends, where rounding carries into the next exponent,
# are always included.
_SOME = np.union1d(_FINITE[::5], np.array(_ENDS, np.uint32))
_TIE = 0x8000


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(part: str, *patterns: NDArray[Any], fixed: bool = False) -> Case:
        calls = [[p.astype(np.uint32).view(np.float32)] for p in patterns]
        return Case((part,), {"calls": calls}, fixed=fixed)

    def low(first: int, last: int, count: int = _SOME.size) -> Bits32:
        return rng.integers(first, last + 1, count, dtype=np.uint32)

    finite, special = _SOME, _UPPER[_SPECIAL]
    nans = np.concatenate(
        [special | low(1, 0xFFFF, special.size), special[special & 0x7F_0000 > 0]]
    )
    # Fixed payloads: a carry turns some of them into inf or -0, and truncation some into inf.
    edges = [0x7F80_0001, 0x7F80_8000, 0x7FFF_8000, 0x7FFF_FFFF, 0x7FC0_0000]
    edges += [0x8000_0000 | bits for bits in edges] + [0x7F80_0000, 0xFF80_0000]
    some = rng.choice(finite, (4, 3, 2)) | low(1, 0x7FFF, 24).reshape(4, 3, 2)
    shapes = (some, some[0].T, some[0, :1, :1], some[:0], some[0, 0, :0], some[0, 0, 0, ...])
    return [
        case("nearest", rng.choice(finite, 8) | low(1, 0x7FFF, 8)),
        case("nearest", finite | low(1, _TIE - 1), finite | low(_TIE + 1, 0xFFFF), finite),
        case("nearest", *shapes),
        case("nearest", finite | 1, finite | _TIE - 1, finite | _TIE + 1, fixed=True),
        case("ties to even", rng.choice(finite, 8) | _TIE),
        case("ties to even", finite | _TIE),
        case("NaN and inf", rng.permutation(np.append(nans, [0x7F80_0000, 0xFF80_0000]))),
        case("NaN and inf", np.array(edges), fixed=True),
    ]


def _to_bf16(x: NDArray[np.float32]) -> Bits16:
    """The nearer of the two bf16 numbers around each value, compared in binary64.

    The upper half of the bits is the neighbour nearer to zero, and the next pattern is the farther
    one. 2**128 has the pattern of infinity.
    """
    bits = x.view(np.uint32)
    toward = (bits >> np.uint32(16)).astype(np.uint16)
    away = toward + np.uint16(1)
    low, high = _VALUES[toward], _VALUES[away]
    with np.errstate(invalid="ignore"):  # NaN and inf are corrected below
        size = np.abs(x.astype(np.float64))
        up, tie = high - size < size - low, high - size == size - low
    nearest = np.where(up | (tie & (toward & 1 == 1)), away, toward)
    return np.where(np.isnan(x), np.uint16(0x7FC0), np.where(np.isinf(x), toward, nearest))


def _values(bits: Bits16) -> NDArray[np.float64]:
    """Magnitudes of bf16 patterns: 2**128 for infinity, and arbitrary for NaN."""
    exponent = (bits >> np.uint16(7) & 0xFF).astype(np.int64)
    significand = (bits & 0x7F).astype(np.float64) / 128 + (exponent > 0)
    value: NDArray[np.float64] = np.ldexp(significand, np.maximum(exponent, 1) - 127)
    return value


_VALUES = _values(np.arange(2**16, dtype=np.uint16))  # by pattern


def _is_nan(bits: Bits16) -> NDArray[np.bool_]:
    return (bits & 0x7FFF) > 0x7F80


def _kind_of(value: Any) -> str:
    """Describe an answer that isn't patterns in the right shape: its type, shape and range."""
    kind = type(value).__name__
    try:
        array = np.asarray(value)
    except ValueError:  # ragged lists
        return f"{kind} of unequal rows"
    if isinstance(value, np.ndarray):
        kind = array.dtype.name
    ends = (
        f", from {array.min()} to {array.max()}" if array.dtype.kind in "iu" and array.size else ""
    )
    return f"{kind} of shape {array.shape}{ends}"


def _as_bits(value: Any, shape: tuple[int, ...]) -> Bits16 | None:
    """The answer as 16-bit patterns of this shape; None if it isn't that."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        return None
    empty = np.zeros(shape, np.uint16)
    if isinstance(value, (list, tuple)) and array.size == 0 and same(empty.tolist(), value):
        return empty  # nested lists lose the dimensions after a 0
    if array.dtype.kind not in "iu" or array.shape != shape:
        return None
    return array.astype(np.uint16) if ((array >= 0) & (array < 2**16)).all() else None


def _same(expected: Bits16, got: Any) -> bool:
    bits = _as_bits(got, expected.shape)
    if bits is None:
        return False
    return bool(((bits == expected) | (_is_nan(bits) & _is_nan(expected))).all())


# Mistakes


def _plus(x: NDArray[np.float32], bias: NDArray[np.uint32] | int) -> Bits16:
    """The upper half of the bits plus a bias; the sum wraps around as uint32 does."""
    return ((x.view(np.uint32) + np.asarray(bias, np.uint32)) >> np.uint32(16)).astype(np.uint16)


def _trick(x: NDArray[np.float32]) -> Bits16:
    return _plus(x, 0x7FFF + (x.view(np.uint32) >> np.uint32(16) & np.uint32(1)))


def _with_nan(x: NDArray[np.float32], bits: Bits16) -> Bits16:
    return np.where(np.isnan(x), np.uint16(0x7FC0), bits)


def _nan_cut(x: NDArray[np.float32]) -> Bits16:
    return np.where(np.isfinite(x), _trick(x), _plus(x, 0))


def _inf_is_nan(x: NDArray[np.float32]) -> Bits16:
    return np.where(np.isfinite(x), _trick(x), np.uint16(0x7FC0))


def _saturates(x: NDArray[np.float32]) -> Bits16:
    bits = _to_bf16(x)
    overflow = np.isfinite(x) & ((bits & 0x7FFF) == 0x7F80)
    return np.where(overflow, bits - np.uint16(1), bits)


def _lower_half(x: NDArray[np.float32]) -> Bits16:
    return (x.view(np.uint32) & np.uint32(0xFFFF)).astype(np.uint16)


_by_reference = by_reference(
    _to_bf16,
    {
        "nan_overflows": _trick,
        "nan_cut_to_inf": _nan_cut,
        "inf_is_nan": _inf_is_nan,
        "ties_away": lambda x: _with_nan(x, _plus(x, 0x8000)),
        "ties_toward_zero": lambda x: _with_nan(x, _plus(x, 0x7FFF)),
        "truncates": lambda x: _plus(x, 0),
        "saturates": _saturates,
        "lower_half": _lower_half,
    },
    equal=_same,
)


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    findings = _by_reference(case, answer)
    if all(finding.ok for finding in findings.values()):
        return findings
    said = _first_difference(case.inputs["calls"], answer.value)
    return {part: replace(f, said=said or f.said) for part, f in findings.items()}


def _first_difference(calls: Any, outcomes: Any) -> str:
    """A sentence on the first wrong element; empty if the whole answer has the wrong form."""
    if not are_outcomes(outcomes, len(calls)):
        return ""
    for (x,), got in zip(calls, outcomes, strict=True):
        expected = _to_bf16(x)
        if got[0] == "changed":
            return f"For an array of shape {x.shape}: your function changed it in place."
        if got[0] != "value":
            return ""
        if _same(expected, got[1]):
            continue
        bits = _as_bits(got[1], x.shape)
        if bits is None:
            return (
                f"For an array of shape {x.shape}: expected integers from 0 to 65535 in that "
                f"shape, got {_kind_of(got[1])}."
            )
        at = np.flatnonzero((bits != expected) & ~(_is_nan(bits) & _is_nan(expected)))[0]
        pattern = int(x.view(np.uint32).reshape(-1)[at])
        want, have = int(expected.reshape(-1)[at]), int(bits.reshape(-1)[at])
        return (
            f"For the element {x.reshape(-1)[at]} (bits 0x{pattern:08X}): "
            f"expected 0x{want:04X}, but got 0x{have:04X}."
        )
    return ""


to_bf16 = Task(
    id="lab01-to_bf16",
    parts={"nearest": 1, "ties to even": 1, "NaN and inf": 1},
    defines=("to_bf16",),
    probe="to_bf16",
    cases=_cases,
    judge=_judge,
    mistakes={
        "nan_overflows": "Adding 0x7FFF carries into the exponent and the sign: it turns NaN "
        "0x7FFFFFFF into -0.0 and NaN 0x7F800001 into infinity. Handle NaN separately, with "
        "np.isnan: NaN equals nothing, not even itself.",
        "nan_cut_to_inf": "A NaN whose payload is in the lower half becomes infinity when you cut "
        "that half off. Set a bit in the upper half, such as 0x40.",
        "inf_is_nan": "Infinity became NaN: with an exponent field of 255, only a nonzero "
        "fraction means NaN.",
        "ties_away": "Adding 0x8000 rounds every tie up. A tie goes to the pattern whose last bit "
        "is 0, so only odd upper halves go up.",
        "ties_toward_zero": "Adding 0x7FFF alone rounds every tie down. A tie goes to the pattern "
        "whose last bit is 0, so odd upper halves go up.",
        "truncates": "Cutting off the lower half rounds toward zero. Return the nearest bf16 "
        "number.",
        "saturates": "Above the largest bf16 number, your function returns that number; "
        "round-to-nearest-even gives infinity there.",
        "lower_half": "Your function keeps the lower 16 bits. The sign, the exponent and the "
        "fraction's leading bits are in the upper 16.",
    },
    ban=NO_CASTS_NO_LOOPS,
)
