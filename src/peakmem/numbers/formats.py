"""Floating-point formats as data, and pure functions that decode, encode and round numbers.

A number is a bit pattern: one sign bit, then the exponent field, then the mantissa. With e the
exponent field and f the mantissa, its value is

    e > 0 (normal):      (-1)^sign * 2^(e - bias) * (1 + f / 2^mantissa_bits)
    e = 0 (subnormal):   (-1)^sign * 2^(1 - bias) * (f / 2^mantissa_bits)

except for the patterns that `specials` reserves for infinities and NaN. Functions take a number or
an array: they return a Python number for a number, and an array of the same shape for an array.

Every format here is a subset of binary64 (Python's float), so `decode` is exact and `encode` rounds
once. But `encode` reads its input as binary64, so an int beyond 2^53, a longdouble or a decimal
literal was rounded before. A NaN keeps its sign but not its payload.

Long because labs hide the formats and their functions as one module.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

__all__ = [
    "BF16",
    "FORMATS",
    "FP4_E2M1",
    "FP8_E4M3",
    "FP8_E5M2",
    "FP16",
    "FP32",
    "FP64",
    "TF32",
    "Fields",
    "Limits",
    "NumberFormat",
    "decode",
    "encode",
    "fields",
    "limits",
    "neighbours",
    "powers_of_two",
    "quantize",
    "ulp",
]

Specials = Literal["ieee", "one_nan", "none"]
Rounding = Literal["nearest_even", "toward_zero", "stochastic"]
Kind = Literal["zero", "subnormal", "normal", "infinity", "nan"]
Generator = np.random.Generator | None
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NumberFormat:
    """A binary floating-point format with a sign bit and subnormal numbers.

    Raises ValueError if the format isn't a subset of binary64.

    >>> e3m2 = NumberFormat("fp6_e3m2", exponent_bits=3, mantissa_bits=2, bias=3, specials="none")
    >>> e3m2.width, limits(e3m2).max
    (6, 28.0)
    """

    #: The name used in messages and tables, such as "bf16".
    name: str
    #: Width of the exponent field.
    exponent_bits: int
    #: Width of the mantissa field; the leading 1 of normal numbers isn't stored.
    mantissa_bits: int
    #: What is subtracted from a stored exponent.
    bias: int
    #: Which patterns are not finite numbers. "ieee": all with the largest exponent field (mantissa
    #: 0 is infinity, the others are NaN). "one_nan": only the pattern of all ones (NaN). "none": no
    #: pattern. A number too large for the format becomes infinity, NaN or the largest number,
    #: whichever of them exists first.
    specials: Specials = "ieee"

    def __post_init__(self) -> None:
        if self.specials not in ("ieee", "one_nan", "none"):
            raise ValueError(
                f"{self.name}: specials={self.specials!r} is unknown; "
                "use 'ieee', 'one_nan' or 'none'"
            )
        if self.exponent_bits < 2 or not 1 <= self.mantissa_bits <= 52:
            raise ValueError(
                f"{self.name}: expected at least 2 exponent bits and 1 to 52 mantissa bits, "
                f"but got {self.exponent_bits} and {self.mantissa_bits}"
            )
        top_exponent = (self.largest_pattern >> self.mantissa_bits) - self.bias
        if self.min_exponent - self.mantissa_bits < -1074 or top_exponent > 1023:
            raise ValueError(
                f"{self.name}: its numbers range from 2^{self.min_exponent - self.mantissa_bits} "
                f"to 2^{top_exponent}, but binary64 holds only 2^-1074 to 2^1023; "
                "use fewer bits or another bias"
            )

    @property
    def width(self) -> int:
        """Bits of a pattern, including the sign bit."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal number, and of all subnormal numbers."""
        return 1 - self.bias

    @property
    def largest_pattern(self) -> int:
        """Pattern of the largest finite number; larger unsigned patterns are special."""
        reserved = {"ieee": 1 << self.mantissa_bits, "one_nan": 1, "none": 0}
        return (1 << (self.width - 1)) - 1 - reserved[self.specials]

    @property
    def has_inf(self) -> bool:
        """Whether the format has infinities."""
        return self.specials == "ieee"

    @property
    def has_nan(self) -> bool:
        """Whether the format has NaN."""
        return self.specials != "none"


FP64 = NumberFormat("fp64", exponent_bits=11, mantissa_bits=52, bias=1023)  # IEEE 754 binary64
FP32 = NumberFormat("fp32", exponent_bits=8, mantissa_bits=23, bias=127)  # IEEE 754 binary32
FP16 = NumberFormat("fp16", exponent_bits=5, mantissa_bits=10, bias=15)  # IEEE 754 binary16
# The upper half of an fp32 pattern (Google's bfloat16).
BF16 = NumberFormat("bf16", exponent_bits=8, mantissa_bits=7, bias=127)
# The upper 19 bits of an fp32 pattern, which NVIDIA's tensor cores read. In memory it takes 32.
TF32 = NumberFormat("tf32", exponent_bits=8, mantissa_bits=10, bias=127)
# OCP 8-bit Floating Point Specification (OFP8), 2023. E4M3 has no infinities, which leaves room for
# more numbers. OFP8 defines overflow with and without saturation. Here overflow doesn't saturate
# (E5M2: infinity, E4M3: NaN), as in ml_dtypes. torch saturates E4M3: clip to -448..448 to match it.
FP8_E5M2 = NumberFormat("fp8_e5m2", exponent_bits=5, mantissa_bits=2, bias=15)
FP8_E4M3 = NumberFormat("fp8_e4m3", exponent_bits=4, mantissa_bits=3, bias=7, specials="one_nan")
# OCP Microscaling Formats (MX), 2023: all 16 patterns are numbers, so overflow saturates.
FP4_E2M1 = NumberFormat("fp4_e2m1", exponent_bits=2, mantissa_bits=1, bias=1, specials="none")

FORMATS = MappingProxyType(
    {f.name: f for f in (FP64, FP32, TF32, BF16, FP16, FP8_E4M3, FP8_E5M2, FP4_E2M1)}
)


@dataclass(frozen=True)
class Fields:
    """The fields of a pattern, and its kind."""

    #: 0, or 1 for negative numbers.
    sign: int
    #: As stored, so with the bias.
    exponent: int
    #: As stored, so without the leading 1.
    mantissa: int
    #: Such as "normal" or "nan".
    kind: Kind


@dataclass(frozen=True)
class Limits:
    """The range and the precision of a format."""

    #: The largest finite number.
    max: float
    #: The smallest positive normal number.
    min_normal: float
    #: The smallest positive number.
    min_subnormal: float
    #: The gap between 1 and the next larger number.
    epsilon: float


@overload
def decode(fmt: NumberFormat, bits: int) -> float: ...
@overload
def decode(fmt: NumberFormat, bits: npt.NDArray[np.integer]) -> Numbers: ...
def decode(fmt: NumberFormat, bits: Any) -> Any:
    """Return the exact value of a pattern (of an array: float64, same shape).

    >>> decode(FP32, 0x3E880000), decode(FP8_E4M3, 0x7E)
    (0.265625, 448.0)

    Raises ValueError unless `bits` are integers from 0 to 2^width - 1.
    """
    patterns = _patterns(fmt, bits)
    unsigned = patterns & np.uint64(2 ** (fmt.width - 1) - 1)
    special = unsigned > fmt.largest_pattern
    number = np.where(special, np.uint64(0), unsigned)
    exponent = (number >> np.uint64(fmt.mantissa_bits)).astype(np.int32)
    mantissa = number & np.uint64(2**fmt.mantissa_bits - 1)
    significand = mantissa + np.where(exponent > 0, np.uint64(2**fmt.mantissa_bits), np.uint64(0))
    power = np.maximum(exponent, 1) - (fmt.bias + fmt.mantissa_bits)
    magnitude = np.ldexp(significand.astype(np.float64), power)
    magnitude = np.where(special, np.nan, magnitude)
    if fmt.has_inf:
        magnitude = np.where(unsigned == fmt.largest_pattern + 1, np.inf, magnitude)
    return _as_given(np.where(patterns > unsigned, -magnitude, magnitude))


@overload
def encode(fmt: NumberFormat, x: float, rounding: Rounding = ..., rng: Generator = ...) -> int: ...
@overload
def encode(
    fmt: NumberFormat, x: npt.NDArray[Any], rounding: Rounding = ..., rng: Generator = ...
) -> npt.NDArray[np.unsignedinteger]: ...
def encode(
    fmt: NumberFormat, x: Any, rounding: Rounding = "nearest_even", rng: Generator = None
) -> Any:
    """Return the pattern that `x` rounds to (of an array: unsigned integers, same shape).

    >>> hex(encode(BF16, 0.1)), hex(encode(BF16, 0.1, "toward_zero"))
    ('0x3dcd', '0x3dcc')

    "nearest_even" rounds to the nearest number, and breaks ties toward the even pattern.
    "stochastic" rounds away from zero with the probability that makes the result unbiased, to
    within 2^-53 of the gap; it draws once for each number, from `rng`. A result above the largest
    number overflows as the format's `specials` say, but "toward_zero" turns it into the largest
    number unless `x` is infinite.

    Raises ValueError for an unknown rounding, for "stochastic" without `rng`, and for NaN if the
    format has none.
    """
    numbers = np.asarray(x, dtype=np.float64)
    if not fmt.has_nan and np.isnan(numbers).any():
        raise ValueError(
            f"x contains NaN, but {fmt.name} has none; replace it first (np.nan_to_num)"
        )
    finite = np.isfinite(numbers)
    magnitude = np.where(finite, np.abs(numbers), 0.0)
    exponent = _exponent(fmt, magnitude)
    # In units of the gap between neighbours, the format's numbers are the integers.
    significand = _round(np.ldexp(magnitude, fmt.mantissa_bits - exponent), rounding, rng)
    # One sum covers normal and subnormal numbers: a significand that rounds up to
    # 2^(mantissa_bits + 1), or to the first normal number, carries into the exponent field.
    field = (exponent - fmt.min_exponent).astype(np.uint64) << np.uint64(fmt.mantissa_bits)
    unsigned = field + significand.astype(np.uint64)

    largest = np.uint64(fmt.largest_pattern)
    overflow = np.uint64(fmt.largest_pattern + fmt.has_nan)  # infinity, else NaN, else the largest
    kept = largest if rounding == "toward_zero" else overflow
    unsigned = np.where(unsigned > largest, kept, unsigned)
    unsigned = np.where(finite, unsigned, overflow)
    if fmt.has_inf:  # a quiet NaN: the first mantissa bit is set
        unsigned = np.where(
            np.isnan(numbers), overflow | np.uint64(2 ** (fmt.mantissa_bits - 1)), unsigned
        )
    sign = np.signbit(numbers).astype(np.uint64) << np.uint64(fmt.width - 1)
    return _as_given((unsigned | sign).astype(np.min_scalar_type(2**fmt.width - 1)))


@overload
def quantize(
    fmt: NumberFormat, x: float, rounding: Rounding = ..., rng: Generator = ...
) -> float: ...
@overload
def quantize(
    fmt: NumberFormat, x: npt.NDArray[Any], rounding: Rounding = ..., rng: Generator = ...
) -> Numbers: ...
def quantize(
    fmt: NumberFormat, x: Any, rounding: Rounding = "nearest_even", rng: Generator = None
) -> Any:
    """Return `x` rounded to the format, as float64; rounding and errors are those of `encode`.

    >>> quantize(FP16, np.array([0.1, 2049, 70000]))
    array([9.99755859e-02, 2.04800000e+03,            inf])
    """
    return decode(fmt, encode(fmt, x, rounding, rng))


def fields(fmt: NumberFormat, bits: int) -> Fields:
    """Return the fields of one pattern.

    >>> fields(FP16, 0xC500)
    Fields(sign=1, exponent=17, mantissa=256, kind='normal')

    Raises ValueError unless `bits` is an integer from 0 to 2^width - 1.
    """
    pattern = int(_patterns(fmt, bits))
    sign, unsigned = divmod(pattern, 2 ** (fmt.width - 1))
    exponent, mantissa = divmod(unsigned, 2**fmt.mantissa_bits)
    kind: Kind = "normal" if exponent else "subnormal" if mantissa else "zero"
    if unsigned > fmt.largest_pattern:
        kind = "nan" if mantissa else "infinity"
    return Fields(sign, exponent, mantissa, kind)


def limits(fmt: NumberFormat) -> Limits:
    """Return a format's range and precision.

    >>> limits(FP4_E2M1)
    Limits(max=6.0, min_normal=1.0, min_subnormal=0.5, epsilon=0.5)
    """
    return Limits(
        max=decode(fmt, fmt.largest_pattern),
        min_normal=decode(fmt, 2**fmt.mantissa_bits),
        min_subnormal=decode(fmt, 1),
        epsilon=ulp(fmt, 1.0),
    )


def ulp(fmt: NumberFormat, x: float) -> float:
    """Return the gap between the format's numbers around `x`; at a power of two, the larger gap.

    `x` need not be representable. Raises ValueError if it is NaN or beyond the largest number.

    >>> ulp(FP16, 32.0), ulp(FP16, 31.9)
    (0.03125, 0.015625)
    """
    magnitude, largest = abs(float(x)), decode(fmt, fmt.largest_pattern)
    if not magnitude <= largest:
        raise ValueError(
            f"{fmt.name} has no gap at x={x!r}; give a number from {-largest!r} to {largest!r}"
        )
    return math.ldexp(1.0, int(_exponent(fmt, np.float64(magnitude))) - fmt.mantissa_bits)


def neighbours(fmt: NumberFormat, bits: int) -> tuple[float | None, float | None]:
    """Return the next smaller and the next larger number; None if there is none.

    Infinities count as numbers, and both zeros count as one. Raises ValueError if `bits` is NaN.

    >>> neighbours(FP8_E4M3, encode(FP8_E4M3, 1.0)), neighbours(FP8_E4M3, 0x7E)
    ((0.9375, 1.125), (416.0, None))
    """
    parts = fields(fmt, bits)
    if parts.kind == "nan":
        raise ValueError(f"{bits:#x} is NaN in {fmt.name}, which has no neighbours; give a number")
    # An unsigned pattern is the rank of its magnitude, so neighbours differ by one.
    sign_bit = 2 ** (fmt.width - 1)
    unsigned = int(bits) % sign_bit
    rank = -unsigned if parts.sign else unsigned
    last = fmt.largest_pattern + fmt.has_inf

    def number(rank: int) -> float | None:
        if abs(rank) > last:
            return None
        return decode(fmt, rank if rank >= 0 else sign_bit - rank)

    return number(rank - 1), number(rank + 1)


def powers_of_two(fmt: NumberFormat, bits: int) -> tuple[int, ...]:
    """Return the exponents of the powers of two that add up to the magnitude, largest first.

    >>> powers_of_two(FP32, 0x3E880000)  # 0.265625 = 1/4 + 1/64
    (-2, -6)

    Zero has none. Raises ValueError for infinity and NaN.
    """
    parts = fields(fmt, bits)
    if parts.kind in ("infinity", "nan"):
        raise ValueError(
            f"{bits:#x} is {parts.kind} in {fmt.name}, not a sum of powers of two; "
            "give a finite number"
        )
    significand = parts.mantissa + (2**fmt.mantissa_bits if parts.exponent else 0)
    lowest = max(parts.exponent, 1) - fmt.bias - fmt.mantissa_bits
    return tuple(
        lowest + i for i in reversed(range(significand.bit_length())) if significand >> i & 1
    )


def _exponent(fmt: NumberFormat, magnitude: Any) -> npt.NDArray[np.int32]:
    """Return the exponent of each number, at least the subnormal numbers' exponent."""
    power = np.where(magnitude > 0, np.frexp(magnitude)[1] - 1, fmt.min_exponent)
    return np.maximum(power, fmt.min_exponent)


def _round(scaled: Numbers, rounding: str, rng: Generator) -> Numbers:
    """Round non-negative numbers to integers."""
    if rounding == "nearest_even":
        return np.rint(scaled)
    below = np.floor(scaled)
    if rounding == "toward_zero":
        return below
    if rounding != "stochastic":
        raise ValueError(
            f"rounding={rounding!r} is unknown; use 'nearest_even', 'toward_zero' or 'stochastic'"
        )
    if rng is None:
        raise ValueError(
            "stochastic rounding draws random numbers, but got no generator; give "
            "rng=np.random.default_rng(seed)"
        )
    return below + (rng.random(scaled.shape) < scaled - below)


def _patterns(fmt: NumberFormat, bits: Any) -> npt.NDArray[np.uint64]:
    """Return patterns as uint64. Raises ValueError if they aren't patterns of the format."""
    patterns = np.asarray(bits)
    if patterns.dtype.kind not in "iu":
        wrong = f"{bits!r} of type {type(bits).__name__}"
    elif patterns.size and int(patterns.min()) < 0:
        wrong = str(patterns.min())
    elif patterns.size and int(patterns.max()) >= 2**fmt.width:
        wrong = hex(patterns.max())
    else:
        return patterns.astype(np.uint64)
    raise ValueError(
        f"{wrong} is not a pattern of {fmt.name}: expected an integer from 0 to "
        f"{2**fmt.width - 1:#x} ({fmt.width} bits); view signed arrays as unsigned, and give bits, "
        "not a number (encode turns a number into bits)"
    )


def _as_given(array: npt.NDArray[Any]) -> Any:
    """Return a 0-dimensional array as a Python number, and any other array as it is."""
    return array.item() if array.ndim == 0 else array
