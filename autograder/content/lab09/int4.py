"""Exercise: two codes in a byte. The kernel bounds the memory of many packed tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from autograder.content.lab09.figures import FROM_MEMORY, IN_PLACE, Array, same_codes
from autograder.content.meter_tampering import NO_METER_TAMPERING
from autograder.model.compare import by_reference
from autograder.model.task import Answer, Budget, Case, Finding, Task

__all__ = ["pack_int4"]

_ROUND_TRIP, _MIB = "value", 2**20
# 20 MiB packed, 40 MiB as whole bytes. A packed tensor has 64 KiB, because in the sandbox smaller
# blocks are on the heap, with gaps between them.
_TENSORS, _N = 320, 2**17
_MOST_BYTES = 34 * _MIB  # includes one call's temporaries: 9 MiB if each bit is an int64


def _there_and_back(
    q: Array,
    change: Callable[[Array], Array] = lambda q: q,
    *,
    bytes_a_code: float = 0.5,
    dimensions: int = 1,
    decodes: str | None = "alike",
) -> dict[str, Any]:
    return {
        "type": "uint8",
        "stored_bytes": int(np.ceil(len(q) * bytes_a_code)),
        "dimensions": dimensions,
        "unpacked": change(q).astype(np.int8),
        "unpacked_type": "int8",
        "decodes": decodes,
    }


def _decoding(q: Array, how: str) -> dict[str, Any]:
    """The bytes are right, but `unpack_int4` makes this mistake, unless there are no codes."""
    return {**_there_and_back(q, decodes=how if q.any() else None), "unpacked": None}


def _last_lost(q: Array) -> Array:
    return np.append(q[:-1], 0) if len(q) % 2 else q


def _clipped(q: Array) -> Array:
    return np.maximum(q, -7)


def _swapped(q: Array) -> Array:
    pairs = np.append(q, [0] * (len(q) % 2)).reshape(-1, 2)
    return pairs[:, ::-1].ravel()[: len(q)]


def _magnitude(q: Array) -> Array:
    """Two's complement cut to four bits and never extended: -1 comes back as 15."""
    return np.where(q < 0, q + 16, q)


def _cases(rng: np.random.Generator) -> list[Case]:
    def codes(n: int) -> list[Array]:
        return [rng.integers(-8, 8, n).astype(np.int8)]

    even = [codes(2 * int(rng.integers(5, 40))) for _ in range(3)]
    odd = [codes(2 * int(rng.integers(5, 40)) + 1) for _ in range(3)]
    for call in odd:  # not 0, so that losing the last code shows
        call[0][-1] = rng.choice([-8, -3, 5, 7])
    each = [[np.arange(-8, 8, dtype=np.int8)], [np.array([-1], np.int8)], [np.empty(0, np.int8)]]
    pairs = np.stack(np.meshgrid(np.arange(-8, 8), np.arange(-8, 8)), -1).ravel().astype(np.int8)
    large = {"n_tensors": _TENSORS, "n": _N, "seed": int(rng.integers(2**31))}
    return [
        Case((_ROUND_TRIP,), {"calls": even}),
        Case((_ROUND_TRIP,), {"calls": [*even, *odd]}),
        Case(
            (_ROUND_TRIP,),
            {"calls": [*each, [pairs]]},
            fixed=True,
            about="every pair of codes, one code alone, and no code.",
        ),
        Case((_ROUND_TRIP,), {"large": large}, budget=Budget(_MOST_BYTES + _MIB)),
    ]


_MUTANTS: dict[str, Callable[[Array], dict[str, Any]]] = {
    "whole_bytes": lambda q: _there_and_back(q, bytes_a_code=1),
    "sign_lost": lambda q: _there_and_back(q, _magnitude),
    "odd_one_lost": lambda q: _there_and_back(q, _last_lost),
    "lowest_clipped": lambda q: _there_and_back(q, _clipped),
    "halves_swapped": lambda q: _there_and_back(q, _swapped),
    "not_a_vector": lambda q: _there_and_back(q, dimensions=2),
    "in_place": lambda q: _decoding(q, "in place"),
    "from_memory": lambda q: _decoding(q, "from memory"),
}

_small = by_reference(
    _there_and_back,
    _MUTANTS,
    equal=same_codes,
    write=lambda q: f"q = {q.tolist()[:12]}{'...' if len(q) > 12 else ''}",
)


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    if "large" not in case.inputs:
        return _small(case, answer)
    return dict.fromkeys(case.parts, _held(answer))


def _held(answer: Answer) -> Finding:
    value = answer.value if isinstance(answer.value, dict) else {}
    rise = answer.metered("rise_bytes", "numpy_rise_bytes")
    if answer.breaks_budget(rise, _MOST_BYTES):
        said = (
            f"{_TENSORS} tensors of {_N:,} codes take {_TENSORS * _N // 2 // _MIB} MiB packed. "
            f"More than {_MOST_BYTES // _MIB} MiB were live while the grader held all of them."
        )
        return Finding(False, said, ("more_is_held", "whole_bytes"))
    if value.get("equal") != _TENSORS:
        said = "When many tensors are packed, some come back with different codes."
        return Finding(False, said, tuple(_MUTANTS), follows=True)
    return Finding(True)


pack_int4 = Task(
    id="lab09-pack_int4",
    parts={_ROUND_TRIP: 2},
    defines=("pack_int4", "unpack_int4"),
    probe="pack_int4",
    cases=_cases,
    judge=_judge,
    mistakes={
        "more_is_held": "The packed tensor is a view of a larger one, or the codes are still held "
        "elsewhere: a dict or an attribute keeps them alive.",
        "whole_bytes": "Your packed tensor takes a byte per code. Pack two codes into one byte.",
        "sign_lost": "Your negative codes come back as 8 to 15. Codes from 8 to 15 stand for "
        "negative numbers: subtract 16.",
        "odd_one_lost": "With an odd number of codes, the last one is lost. Add a code of 0 before "
        "you pack, and cut it off after unpacking.",
        "lowest_clipped": "Your -8 comes back as -7. Four bits hold -8 to 7.",
        "halves_swapped": "The two codes in each byte come back in reverse order.",
        "not_a_vector": "Your packed tensor is a matrix. Return a vector of bytes.",
        "in_place": IN_PLACE.format("unpack_int4"),
        "from_memory": FROM_MEMORY.format("unpack_int4"),
    },
    ban=NO_METER_TAMPERING,
    trust="measured",
    seconds=60.0,  # for large temporaries, which the sandbox maps every time
)
