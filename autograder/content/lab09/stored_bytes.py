"""Exercise: what n weights take under four schemes, steps included."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograder.model.compare import by_reference, whole
from autograder.model.task import Case, Task

__all__ = ["SCHEMES", "stored_bytes", "weight_bytes"]

_GROUP, _BLOCK, _BLOCKS = 128, 64, 256


def _up(n: int, d: int) -> int:
    return -(-n // d)


#: Codes and steps of n weights: one float32 step, a float16 step per group, a float32 step per
#: block, and the blocks' steps as 8-bit codes with a float32 step for every 256 of them.
SCHEMES: dict[str, Callable[[int], tuple[int, int]]] = {
    "int8": lambda n: (n, 4),
    "int4_grouped": lambda n: (_up(n, 2), 2 * _up(n, _GROUP)),
    "nf4": lambda n: (_up(n, 2), 4 * _up(n, _BLOCK)),
    "nf4_double": lambda n: (
        _up(n, 2),
        _up(n, _BLOCK) + 4 * _up(_up(n, _BLOCK), _BLOCKS),
    ),
}


def weight_bytes(n: int, scheme: str) -> int:
    """Return the bytes of n weights under a scheme. Raises ValueError if it is unknown."""
    if scheme not in SCHEMES:
        raise ValueError(scheme)
    return sum(SCHEMES[scheme](n))


def _but(scheme: str, size: Callable[[int], float]) -> Callable[[int, str], float]:
    return lambda n, s: size(n) if s == scheme else weight_bytes(n, s)


def _codes_alone(n: int, scheme: str) -> int:
    weight_bytes(n, scheme)
    return SCHEMES[scheme](n)[0]


def _rounded_down(n: int, scheme: str) -> int:
    sizes = {
        "int8": n + 4,
        "int4_grouped": n // 2 + n // _GROUP * 2,
        "nf4": n // 2 + n // _BLOCK * 4,
        "nf4_double": n // 2 + n // _BLOCK + n // (_BLOCK * _BLOCKS) * 4,
    }
    weight_bytes(n, scheme)
    return sizes[scheme]


def _bits(n: int, scheme: str) -> float:
    return 8 * weight_bytes(n, scheme)


def _by_ratio(n: int, scheme: str) -> float:
    """Multiplies by bits per weight, so that the last group or block isn't rounded up."""
    weight_bytes(n, scheme)
    bits = {"int8": 8.0, "int4_grouped": 4.125, "nf4": 4.5, "nf4_double": 4 + 1 / 8 + 1 / 512}
    return n * bits[scheme] / 8


def _unknown_passes(n: int, scheme: str) -> int:
    return weight_bytes(n, scheme) if scheme in SCHEMES else weight_bytes(n, "nf4_double")


def _cases(rng: np.random.Generator) -> list[Case]:
    def calls(n: int) -> list[list[object]]:
        return [[n, scheme] for scheme in SCHEMES]

    round_ones = [2**14 * int(rng.integers(2, 50)) for _ in range(2)]
    others = [int(rng.integers(10**5, 10**6)) * 2 + 1 for _ in range(2)]
    known = [call for n in round_ones for call in calls(n)]
    odd = [call for n in others for call in calls(n)]
    # float32 can represent neither the last number nor its half.
    ends = [64 * 256 + 1, 63, 129, 1, 0, 7_000_000_000, 6_738_415_617]
    unknown = str(rng.choice(["fp4", "nf8", "uint4", "awq"]))
    # Some begin with a known name or part of one, end with one, or have a space after it.
    names = (
        "int4",
        "int8_grouped",
        "nf4_triple",
        "NF4",
        "uint8",
        "int4_double",
        "nf4 ",
        "",
        "nf4-double",
    )
    near = [[8, scheme] for scheme in names]
    return [
        Case(("value",), {"calls": known}),
        Case(("value",), {"calls": [*known, *odd]}),
        Case(("value",), {"calls": [*known, *odd, [1000, unknown]]}),
        Case(
            ("value",),
            {"calls": [call for n in ends for call in calls(n)]},
            fixed=True,
            about="a block is just full, or has just begun, or there are billions of weights, or "
            "none.",
        ),
        Case(
            ("value",),
            {"calls": near},
            fixed=True,
            about="the scheme is unknown, but its name resembles a known one.",
        ),
    ]


stored_bytes = Task(
    id="lab09-stored_bytes",
    parts={"value": 2},
    defines=("stored_bytes",),
    probe="stored_bytes",
    cases=_cases,
    judge=by_reference(
        weight_bytes,
        {
            "codes_alone": _codes_alone,
            "rounded_down": _rounded_down,
            "bits_a_weight": _by_ratio,
            "bits": _bits,
            "float32_groups": _but("int4_grouped", lambda n: _up(n, 2) + 4 * _up(n, _GROUP)),
            "float16_blocks": _but("nf4", lambda n: _up(n, 2) + 2 * _up(n, _BLOCK)),
            "no_second_step": _but("nf4_double", lambda n: _up(n, 2) + _up(n, _BLOCK)),
            "second_step_a_block": _but(
                "nf4_double", lambda n: _up(n, 2) + _up(n, _BLOCK) + 4 * _up(n, _BLOCKS)
            ),
            "unknown_passes": _unknown_passes,
        },
        equal=whole(),
    ),
    mistakes={
        "codes_alone": "Your sum includes only codes. Steps are stored too.",
        "rounded_down": "You round down. An odd last code takes a whole byte, and a short last "
        "group or block has its own step: round up.",
        "bits_a_weight": "You multiply by bits per weight, which leaves out the unused part of "
        "the last byte, group or block. Count bytes, groups and blocks.",
        "bits": "Your answer is in bits. Divide by 8.",
        "float32_groups": "Your groups' steps take 4 bytes. In int4_grouped they are float16.",
        "float16_blocks": "Your blocks' steps take 2 bytes. In nf4 they are float32.",
        "no_second_step": "With double quantization, the codes of the blocks' steps need a step as "
        "well: 4 bytes for each 256 blocks.",
        "second_step_a_block": "You count a second step for each 256 weights. Count one for each "
        "256 blocks.",
        "unknown_passes": "Raise ValueError for an unknown scheme.",
    },
)
