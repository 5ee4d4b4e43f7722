"""Exercise: NF4, four-bit codes whose values follow normally distributed weights.

The table is the one printed in the appendix of QLoRA (Dettmers and others, 2023).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.content.lab09.figures import (
    FROM_MEMORY,
    IN_PLACE,
    Array,
    Open,
    same_codes,
    with_open,
)
from autograder.model.compare import by_reference, same
from autograder.model.task import Case, Task

__all__ = ["NF4", "encoded", "nf4"]

# fmt: off
NF4: Array = np.array(
    [
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
        -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
        0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ]
)
# fmt: on
_EVEN: Array = np.linspace(-1, 1, 16)
_INT4: Array = np.arange(-7, 8) / 7


def encoded(
    x: Array,
    block: int | None,
    *,
    table: Array = NF4,
    bytes_a_code: float = 0.5,
    signed: bool = False,
    down: bool = False,
    absmax_type: str = "float32",
) -> dict[str, Any]:
    """Return the probe's answer: packed codes, block sizes and values; options are mistakes."""
    block = block or 64
    n = len(x)
    padded = np.append(x, np.zeros(-n % block, np.float32)).reshape(-1, block)
    sizes = (padded if signed else np.abs(padded)).max(axis=1, initial=-np.inf)
    divisor = np.where(sizes == 0, 1.0, sizes)[:, None]
    distance = np.abs((padded / divisor)[..., None] - table)
    codes = distance.argmin(axis=-1)
    if down:
        codes = np.searchsorted(table, padded / divisor, side="right") - 1
    decoded = (table[codes] * sizes[:, None]).ravel()[:n]
    return {
        "type": "uint8",
        "stored_bytes": int(np.ceil(n * bytes_a_code)),
        "absmax_type": absmax_type,
        "absmax": with_open(sizes, sizes == 0, Open(0)),
        "decoded": decoded,
        "decodes": "alike",
        "reads_packed": True,
        "table": NF4 if table is NF4 else None,
    }


def _equal(expected: Any, got: Any) -> bool:
    """Compare as `same_codes` does; answers without the helper `nf4_table` are fine."""
    if isinstance(got, dict) and same(got.get("table"), "not defined"):
        expected = {**expected, "table": None}
    return same_codes(expected, got)


def _decoding(how: str) -> Callable[..., dict[str, Any]]:
    """The codes are right, but `nf4_decode` makes this mistake."""
    unclear = {"decodes": how, "decoded": None, "reads_packed": None}
    return lambda x, block: {**encoded(x, block), **unclear}


def _of_the_tensor(x: Array, block: int | None) -> dict[str, Any]:
    return encoded(x, len(x))


def _last_block_lost(x: Array, block: int | None) -> dict[str, Any]:
    whole = len(x) // (block or 64) * (block or 64)
    right = encoded(x, block)
    kept = np.append(right["decoded"][:whole], np.zeros(len(x) - whole))
    return {**right, "decoded": kept, "reads_packed": None}


def _draw(rng: np.random.Generator, n: int, block: int | None) -> list[Any]:
    """Values at most 0.4 of the way from one table entry to the next, scaled block by block."""
    size = block or 64
    codes = rng.integers(16, size=n)
    gaps = np.diff(NF4, prepend=-1.0, append=1.0)
    off = rng.uniform(-0.4, 0.4, n)
    values = NF4[codes] + off * np.where(off < 0, gaps[codes], gaps[codes + 1])
    for first in range(0, n, size):
        place = first + int(rng.integers(min(size, n - first)))
        values[place] = rng.choice([-1.0, 1.0])
        values[first : first + size] *= 2.0 ** rng.uniform(-8, 2)
    return [values.astype(np.float32), block]


def _boundaries() -> list[Any]:
    """Values just below and above the middle of every gap, where the nearest entry changes."""
    middle = (NF4[1:] + NF4[:-1]) / 2
    near = np.concatenate([middle - 1e-4, middle + 1e-4, [-1.0, 1.0]])
    return [near.astype(np.float32), 64]


def _cases(rng: np.random.Generator) -> list[Case]:
    whole = [_draw(rng, 64 * int(rng.integers(2, 5)), None), _draw(rng, 96, 32)]
    # If blocks have odd sizes, a byte may hold codes of two blocks.
    ragged = [_draw(rng, 64 + int(rng.integers(10, 50)), 64), _draw(rng, 21, 16), _draw(rng, 24, 5)]
    tiny, empty = _draw(rng, 64, None), _draw(rng, 128, None)
    tiny[0] *= 2.0**-20 / np.abs(tiny[0]).max()  # an absmax that is bounded from below is another
    empty[0][:64] = 0
    return [
        Case(("value",), {"calls": whole}),
        Case(("value",), {"calls": [*whole, *ragged]}),
        Case(("value",), {"calls": [*whole, tiny, empty]}),
        Case(
            ("value",),
            {"calls": [_boundaries(), [np.array([0.5], np.float32), None]]},
            fixed=True,
            about="values are close to the middle between two of the table's, or there is only "
            "one value.",
        ),
    ]


nf4 = Task(
    id="lab09-nf4",
    parts={"value": 3},
    defines=("nf4_encode", "nf4_decode"),
    probe="nf4",
    cases=_cases,
    judge=by_reference(
        encoded,
        {
            "even_steps": lambda x, block: encoded(x, block, table=_EVEN),
            "int4_steps": lambda x, block: encoded(x, block, table=_INT4),
            "mirrored_table": lambda x, block: encoded(x, block, table=-NF4[::-1]),
            "rounds_down": lambda x, block: encoded(x, block, down=True),
            "sign_of_largest": lambda x, block: encoded(x, block, signed=True),
            "whole_bytes": lambda x, block: encoded(x, block, bytes_a_code=1),
            "one_block": _of_the_tensor,
            "block_ignored": lambda x, block: encoded(x, None),
            "last_block_lost": _last_block_lost,
            "absmax_in_float64": lambda x, block: encoded(x, block, absmax_type="float64"),
            "in_place": _decoding("in place"),
            "from_memory": _decoding("from memory"),
        },
        equal=_equal,
        write=lambda x, block: f"{len(x)} values up to {np.abs(x).max():.2g}, block={block or 64}",
    ),
    mistakes={
        "even_steps": "Your 16 values are evenly spaced. NF4's are where weights are: closer "
        "together around 0.",
        "int4_steps": "Your values are those of int4. NF4's are quantiles of a normal "
        "distribution.",
        "mirrored_table": "Your table is upside down: 8 values are above 0, and 7 below.",
        "rounds_down": "You take the next lower value of the table. Take the nearest one.",
        "sign_of_largest": "You divide by the largest signed value. Take the largest absolute "
        "value: a block's lowest value may be farther from 0.",
        "whole_bytes": "Your codes take a byte each. Pack two of them into one.",
        "one_block": "You divide all values by one absmax. Each block has its own.",
        "block_ignored": "Your blocks always have 64 values. Use `block`.",
        "last_block_lost": "You drop a short last block. It is a block like all others.",
        "absmax_in_float64": "Your absmax takes 8 bytes for each block. Keep it in float32.",
        "in_place": IN_PLACE.format("nf4_decode"),
        "from_memory": FROM_MEMORY.format("nf4_decode"),
    },
)
