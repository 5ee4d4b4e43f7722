"""weight_bytes: how many bytes a model's weights take in a format."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from autograder.content.lab02.answers import exact_bytes
from autograder.model.compare import by_reference
from autograder.model.task import Case, Task

__all__ = ["weight_bytes"]

_BITS = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}


def _bits(n_params: int, dtype: str) -> int:
    if dtype not in _BITS:
        raise ValueError(f"no such dtype: {dtype}")
    return n_params * _BITS[dtype]


def _bytes(n_params: int, dtype: str) -> int:
    return -(-_bits(n_params, dtype) // 8)


def _cases(rng: np.random.Generator) -> list[Case]:
    def draw(most: int) -> list[list[object]]:
        counts = [2 * int(count) + 1 for count in rng.integers(1, most, 3)]  # odd: int4 is cut
        return [[count, dtype] for count in counts for dtype in _BITS]

    gpt3 = [[count, dtype] for count in (175 * 10**9, 174_604_259_328) for dtype in _BITS]
    # From 2**54 + 1 on, no float holds such a count or half of it.
    edges = [[count, dtype] for count in (0, 1, 2, 3, 10**15 + 1, 2**54 + 1) for dtype in _BITS]
    unknown = [[10, name] for name in ("float32", "fp4", "FP16", "fp32 ", "mxfp8", "")]
    return [
        Case(("bytes",), {"calls": draw(1000)}),
        Case(("bytes",), {"calls": draw(10**12)}),
        Case(("bytes",), {"calls": unknown}),
        Case(("bytes",), {"calls": gpt3 + edges}, fixed=True),
    ]


def _with(
    dtypes: tuple[str, ...], wrong: Callable[[int, str], object]
) -> Callable[[int, str], object]:
    """The reference, except for some dtypes."""

    def mutant(n_params: int, dtype: str) -> object:
        return wrong(n_params, dtype) if dtype in dtypes else _bytes(n_params, dtype)

    return mutant


def _else(default: object) -> Callable[[int, str], object]:
    """The reference without errors: an unknown dtype gets some bytes per number, or None."""

    def mutant(n_params: int, dtype: str) -> object:
        if dtype in _BITS:
            return _bytes(n_params, dtype)
        return n_params * default if isinstance(default, int) else None

    return mutant


weight_bytes = Task(
    id="lab02-weight_bytes",
    parts={"bytes": 1},
    defines=("weight_bytes",),
    probe="weight_bytes",
    cases=_cases,
    judge=by_reference(
        _bytes,
        {
            "in_gib": lambda n, dtype: _bits(n, dtype) / 8 / 2**30,
            "in_gb": lambda n, dtype: _bits(n, dtype) / 8 / 1e9,
            "in_bits": _bits,
            "rounded_down": lambda n, dtype: _bits(n, dtype) // 8,
            "a_byte_for_int4": _with(("int4",), lambda n, dtype: n),
            "two_bytes_for_fp8": _with(("fp8",), lambda n, dtype: 2 * n),
            "not_whole": lambda n, dtype: _bits(n, dtype) / 8,
            "not_whole_for_int4": _with(("int4",), lambda n, dtype: n / 2),
            "float_quotient": lambda n, dtype: math.ceil(_bits(n, dtype) / 8),
            "half_bytes_as_floats": _with(("int4",), lambda n, dtype: math.ceil(n / 2)),
            "unknown_dtype_taken": _else(4),
            "unknown_dtype_none": _else(None),
        },
        equal=exact_bytes,
        write=lambda n, dtype: f"weight_bytes({n}, {dtype!r})",
    ),
    mistakes={
        "in_gib": "Your answer is in GiB (2**30 bytes). Return bytes; units are for printing.",
        "in_gb": "Your answer is in GB (10**9 bytes). Return bytes; units are for printing.",
        "in_bits": "Your answer is in bits. fp16 has 16 bits, or 2 bytes.",
        "rounded_down": "An odd count of int4 ends in half a byte. Memory comes in whole bytes, so "
        "round up: -(-bits // 8).",
        "a_byte_for_int4": "Two int4 numbers share a byte; you give each its own.",
        "two_bytes_for_fp8": "fp8 takes 1 byte per number; you count 2.",
        "not_whole": "Bytes are whole numbers: use //, and round up. You return a float.",
        "not_whole_for_int4": "int4 takes half a byte per number, but the total is a whole number "
        "of bytes: round up, and return an int.",
        "float_quotient": "You divide with /, and floats above 2**53 can't represent every "
        "integer. Round up with -(-bits // 8).",
        "half_bytes_as_floats": "You halve int4's count with /, and floats above 2**53 can't "
        "represent every integer. Round up with -(-n // 2).",
        "unknown_dtype_taken": "Raise ValueError for any other dtype; otherwise a misspelt one "
        "silently gives a wrong size.",
        "unknown_dtype_none": "Raise ValueError for any other dtype; your function returns None.",
    },
)
