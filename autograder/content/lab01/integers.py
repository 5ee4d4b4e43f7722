"""integer_value and fixed_point_value: what a pattern of bits means without an exponent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograder.content.lab01.forbidden import C_INTEGERS
from autograder.content.one_at_a_time import one_at_a_time
from autograder.model.compare import by_reference, whole
from autograder.model.task import Case, Task

__all__ = ["fixed_point_value", "integer_value"]


def _twos_complement(bits: int, width: int) -> int:
    return int.from_bytes(_extended(bits, width), "big", signed=True)


def _extended(bits: int, width: int) -> bytes:
    """The pattern as whole bytes, with copies of its sign bit in front."""
    size = (width + 7) // 8
    front = (1 << 8 * size) - (1 << width) if bits >> (width - 1) else 0
    return (front | bits).to_bytes(size, "big")


def _sign_magnitude(bits: int, width: int) -> int:
    sign, magnitude = divmod(bits, 1 << width - 1)
    return -magnitude if sign else magnitude


# integer_value


def _integer(bits: int, width: int, encoding: str) -> int:
    if encoding == "unsigned":
        return bits
    if encoding == "sign-magnitude":
        return _sign_magnitude(bits, width)
    if encoding == "twos-complement":
        return _twos_complement(bits, width)
    raise ValueError(f"no such encoding: {encoding}")


_ENCODINGS = ("unsigned", "sign-magnitude", "twos-complement")


def _integer_cases(rng: np.random.Generator) -> list[Case]:
    def case(calls: list[list[object]], *, fixed: bool = False) -> Case:
        return Case(("value",), {"calls": calls}, fixed=fixed)

    def draw(width: int, count: int) -> list[list[object]]:
        patterns = [int(bits) for bits in rng.integers(0, 2**width, count)]
        return [[bits, width, name] for bits in patterns for name in _ENCODINGS]

    unknown = ["signed", "two's complement", "Unsigned", "ones-complement", "magnitude", ""]
    # These begin or end with a known name, or spell it differently.
    unknown += ["unsigned int", "not-unsigned", "twos", "twos-complement ", "sign_magnitude"]
    edges = [(0, 16), (1 << 15, 16), (0xFFFF, 16), (1 << 31, 32), (0xFFFF_FFFF, 32), (1, 32)]
    edges += [(2, 2), (2**60 - 1, 60)]
    return [
        case(draw(8, 12)),
        case(draw(16, 30) + draw(32, 30)),
        case([call for width in (3, 4, 12, 13, 31) for call in draw(width, 8)]),
        case([call for width in (2, 60) for call in draw(width, 4)]),  # doubles have 53 bits
        case([[bits, 8, name] for bits in (49, 177) for name in unknown]),
        case([[bits, 8, name] for bits in range(256) for name in _ENCODINGS], fixed=True),
        case([[bits, width, name] for bits, width in edges for name in _ENCODINGS], fixed=True),
    ]


def _with(encoding: str, wrong: Callable[[int, int], int]) -> Callable[[int, int, str], int]:
    """The reference, except for one encoding."""

    def mutant(bits: int, width: int, name: str) -> int:
        return wrong(bits, width) if name == encoding else _integer(bits, width, name)

    return mutant


def _ones_complement(bits: int, width: int) -> int:
    return bits - (1 << width) + 1 if bits >> (width - 1) else bits


def _always_8_bits(bits: int, width: int, encoding: str) -> int:
    negative = bits >> 7 & 1
    if encoding == "sign-magnitude" and negative:
        return -(bits - 2**7)
    if encoding == "twos-complement" and negative:
        return bits - 2**8
    return _integer(bits, 64, encoding)


def _known_widths(bits: int, width: int, encoding: str) -> int:
    """Correct for the widths of C's integers; any other width is rounded up to one of these."""
    return _integer(bits, min(known for known in (8, 16, 32) if known >= width), encoding)


def _falls_through(bits: int, width: int, encoding: str) -> int:
    known = encoding in _ENCODINGS
    return _integer(bits, width, encoding if known else "twos-complement")


integer_value = Task(
    id="lab01-integer_value",
    parts={"value": 2},
    defines=("integer_value",),
    probe="integer_value",
    cases=_integer_cases,
    judge=by_reference(
        _integer,
        {
            "ones_complement": _with("twos-complement", _ones_complement),
            "twos_as_sign_magnitude": _with("twos-complement", _sign_magnitude),
            "sign_magnitude_as_twos": _with("sign-magnitude", _twos_complement),
            "sign_bit_counted": _with(
                "sign-magnitude", lambda bits, width: -bits if bits >> (width - 1) else bits
            ),
            "always_8_bits": _always_8_bits,
            "known_widths_only": _known_widths,
            "unknown_encoding_taken": _falls_through,
            "unknown_encoding_none": lambda bits, width, encoding: (
                _integer(bits, width, encoding) if encoding in _ENCODINGS else None
            ),
        },
        equal=whole(),
        write=lambda bits, width, encoding: (
            f"integer_value(0b{bits:0{width}b}, {width}, {encoding!r})"
        ),
    ),
    mistakes={
        "ones_complement": "In two's complement the highest bit is worth -2**(width - 1): "
        "subtract 2**width where it is set, not 2**width - 1.",
        "twos_as_sign_magnitude": "Your two's complement is sign-magnitude. In two's complement "
        "the highest bit is worth -2**(width - 1), and all other bits keep their worth.",
        "sign_magnitude_as_twos": "Your sign-magnitude is two's complement. In sign-magnitude the "
        "highest bit is only the sign, and the other bits are the magnitude.",
        "sign_bit_counted": "The sign bit is part of your magnitude. Clear it first.",
        "always_8_bits": "The sign is bit `width - 1`, which is bit 7 only if width is 8.",
        "known_widths_only": "Your function is correct for 8, 16 and 32 bits only. width may be "
        "any number: the sign is bit `width - 1`.",
        "unknown_encoding_taken": "Raise ValueError for any other encoding; otherwise a misspelt "
        "one silently gives a wrong number.",
        "unknown_encoding_none": "Raise ValueError for any other encoding; your function returns "
        "None.",
    },
    ban=C_INTEGERS,
)


# fixed_point_value


def _fixed_point(bits: int, width: int, fraction_bits: int) -> float:
    return _twos_complement(bits, width) / (1 << fraction_bits)


def _fixed_point_cases(rng: np.random.Generator) -> list[Case]:
    def draw(width: int) -> list[int]:
        fraction_bits = int(rng.integers(1, width))
        return [int(rng.integers(0, 2**width)), width, fraction_bits]

    drawn = [draw(width) for width in (8, 16, 32) for _ in range(20)]
    drawn += [draw(width) for width in (3, 5, 12, 27) for _ in range(5)]
    edges = [[0b0011_0001, 8, 4], [0b1100_1111, 8, 4], [0x80, 8, 7], [0xFF, 8, 0], [0x8001, 16, 16]]
    edges += [[0xC0, 16, 8], [0x8000_0000, 32, 31], [0x7FFF_FFFF, 32, 31]]
    edges += one_at_a_time([0b1000, 4, 2], {0: 0b0111, 1: 8, 2: 3})
    return [
        Case(("value",), {"calls": drawn}),
        Case(("value",), {"calls": edges}, fixed=True),
    ]


fixed_point_value = Task(
    id="lab01-fixed_point_value",
    parts={"value": 1},
    defines=("fixed_point_value",),
    probe="fixed_point_value",
    cases=_fixed_point_cases,
    judge=by_reference(
        _fixed_point,
        {
            "unsigned": lambda bits, width, f: bits / 2**f,
            "sign_magnitude": lambda bits, width, f: _sign_magnitude(bits, width) / 2**f,
            "fraction_dropped": lambda bits, width, f: float(_twos_complement(bits, width) >> f),
            "scaled_up": lambda bits, width, f: _twos_complement(bits, width) * 2.0**f,
            "integer_bits_as_fraction": lambda bits, width, f: (
                _twos_complement(bits, width) / 2 ** (width - f)
            ),
            "decimal_point": lambda bits, width, f: _twos_complement(bits, width) / 10**f,
            "always_8_bits": lambda bits, width, f: (bits - 2**8 * (bits >> 7 & 1)) / 2**f,
        },
        write=lambda bits, width, f: f"fixed_point_value(0b{bits:0{width}b}, {width}, {f})",
    ),
    mistakes={
        "unsigned": "The pattern is in two's complement: its highest bit has a negative worth.",
        "sign_magnitude": "The pattern is in two's complement, but you read it as sign and "
        "magnitude.",
        "fraction_dropped": "Shifting right, or //, drops the fraction. Divide by "
        "2**fraction_bits with /.",
        "scaled_up": "Divide by 2**fraction_bits; you multiply.",
        "integer_bits_as_fraction": "fraction_bits is the number of bits after the point; you "
        "treat it as the number before it.",
        "decimal_point": "Each bit after the point is worth half as much as the bit before it: "
        "divide by 2**fraction_bits, not by a power of ten.",
        "always_8_bits": "The sign is bit `width - 1`, which is bit 7 only if width is 8.",
    },
    ban=C_INTEGERS,
)
