"""inconsistent_rows: which rows of a table of models contradict themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from autograder.model.compare import by_reference, show
from autograder.model.task import Case, Task

__all__ = ["inconsistent_rows"]

Row = Mapping[str, Any]

_KEYS = ("name", "n_layers", "d_model", "n_heads", "d_head")
_GPT3 = (
    ("GPT-3 Small", 12, 768, 12, 64),
    ("GPT-3 Medium", 24, 1024, 16, 64),
    ("GPT-3 Large", 24, 1536, 16, 96),
    ("GPT-3 XL", 24, 2048, 24, 128),
    ("GPT-3 2.7B", 32, 2560, 32, 80),
    ("GPT-3 6.7B", 32, 4096, 32, 128),
    ("GPT-3 13B", 40, 5140, 40, 128),
    ("GPT-3 175B", 96, 12288, 96, 128),
)
_WIDTHS = (767, 769, 384, 1536)


def _where(wrong: Callable[[Row], bool]) -> Callable[[Iterable[Row]], set[str]]:
    return lambda table: {row["name"] for row in table if wrong(row)}


_inconsistent = _where(lambda row: row["n_heads"] * row["d_head"] != row["d_model"])


def _table(rng: np.random.Generator, count: int) -> list[dict[str, Any]]:
    """Rows that are consistent, or off by 1, by a remainder, by one head, or by a factor of two."""
    rows = []
    for index in rng.permutation(count):
        n_heads, d_head = int(rng.integers(2, 100)), 2 * int(rng.integers(8, 100))
        width, remainder = n_heads * d_head, int(rng.integers(1, n_heads))
        off = (0, 0, remainder, n_heads, -n_heads, 1, -1, width, -width // 2)[int(rng.integers(9))]
        d_model = width + off
        row = (f"model-{index}", int(rng.integers(1, 100)), d_model, n_heads, d_head)
        rows.append(dict(zip(_KEYS, row, strict=True)))
    return rows


def _cases(rng: np.random.Generator) -> list[Case]:
    gpt3 = [dict(zip(_KEYS, row, strict=True)) for row in _GPT3]
    drawn = [[_table(rng, count)] for count in (4, 8, 8, 30)]
    # 12 heads of 64 with widths that are larger or smaller, by 1 or by a whole factor.
    widths = [[{**gpt3[0], "name": f"{w}", "d_model": w} for w in (w0, 768)] for w0 in _WIDTHS]
    # The same width, with other heads.
    heads = [{**gpt3[0], "name": "one more", "n_heads": 13}, {**gpt3[0], "d_head": 63}]
    equal = [*heads, {**gpt3[0], "name": "like the first"}]
    fixed = [[gpt3], [[]], [gpt3[:1]], [gpt3[6:7]], [equal], *([rows] for rows in widths)]
    return [
        Case(("names",), {"calls": drawn}),
        Case(("names",), {"calls": fixed}, fixed=True),
    ]


def _same_names(expected: Any, got: Any) -> bool:
    """Tell whether a list of names, in any order, has the expected ones."""
    if isinstance(expected, set):
        return (
            isinstance(got, list)
            and all(isinstance(name, str) for name in got)
            and set(got) == expected
        )
    return (
        isinstance(got, list)
        and len(got) == len(expected)
        and set(map(str, got)) == set(map(str, expected))
    )


def _rows_at_fault(table: Iterable[Row]) -> list[Any]:
    names = _inconsistent(table)
    return [row for row in table if row["name"] in names]


def _numbers_of_rows(table: Iterable[Row]) -> list[Any]:
    names = _inconsistent(table)
    return [index for index, row in enumerate(table) if row["name"] in names]


inconsistent_rows = Task(
    id="lab02-inconsistent_rows",
    parts={"names": 1},
    defines=("inconsistent_rows",),
    probe="inconsistent_rows",
    cases=_cases,
    judge=by_reference(
        _inconsistent,
        {
            "floor_division": _where(lambda row: row["d_model"] // row["n_heads"] != row["d_head"]),
            "floored_heads": _where(lambda row: row["d_model"] // row["d_head"] != row["n_heads"]),
            "divisibility_only": _where(lambda row: row["d_model"] % row["n_heads"] != 0),
            "multiples_pass": _where(lambda row: row["d_model"] % (row["n_heads"] * row["d_head"])),
            "too_wide_only": _where(lambda row: row["n_heads"] * row["d_head"] > row["d_model"]),
            "too_narrow_only": _where(lambda row: row["n_heads"] * row["d_head"] < row["d_model"]),
            "consistent_rows": _where(lambda row: row["n_heads"] * row["d_head"] == row["d_model"]),
            "rows_not_names": _rows_at_fault,
            "numbers_of_rows": _numbers_of_rows,
        },
        equal=_same_names,
        write=lambda table: f"the table {show(table, 400)}",
    ),
    mistakes={
        "floor_division": "// drops the remainder: 5140 // 40 is 128, but 40 * 128 is not 5140. "
        "Multiply instead.",
        "floored_heads": "// drops the remainder: 5140 // 128 is 40, but 40 * 128 is not 5140. "
        "Multiply instead.",
        "divisibility_only": "You only check whether n_heads divides d_model. A row can still be "
        "wrong if d_head is another number.",
        "multiples_pass": "You only check for a remainder, and there is none if d_model is twice "
        "the heads' total width. Compare the two widths.",
        "too_wide_only": "You only find rows whose heads together are wider than d_model.",
        "too_narrow_only": "You only find rows whose heads together are narrower than d_model.",
        "consistent_rows": "You return the rows that add up. Return the rows that don't.",
        "rows_not_names": "You return whole rows. Return their names.",
        "numbers_of_rows": "You return the rows' positions. Return their names.",
    },
)
