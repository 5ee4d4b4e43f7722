"""Probe of lab 10's online softmax: rows that arrive once, block by block."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from peakmem.probes import Namespace, as_sent
from peakmem.probes.lab10.figures import metered_rise

__all__ = ["long_row", "online_softmax", "scores_alone"]

Rows = Sequence[Sequence[tuple[Sequence[float], Sequence[Sequence[float]]]]]


def online_softmax(
    student: Namespace,
    rows: Rows = (),
    long: Mapping[str, int] | None = None,
    metered: bool = True,
) -> list[dict[str, Any]] | dict[str, Any]:
    """Call `online_softmax` and `weighted_sum` on each row; a generator yields its blocks.

    A row is a list of blocks; a block is its scores and a list of values for each score. Returns a
    dict for each row, with `statistics`, the `weighted` sum, and whether a block was `changed`. For
    one `long` row (`n_blocks`, `scores` per block, `width` of values, `seed`), returns one dict,
    with `scores_rise_bytes` of `online_softmax` on the blocks of `scores_alone`, and if `metered`,
    `rise_bytes` of `weighted_sum`. The former also counts Python objects, such as lists.
    """
    if long is None:
        return [_outcome(student, row) for row in rows]
    _long(student, {**long, "n_blocks": 2, "seed": long["seed"] ^ 1}, metered=False)
    gc.collect(1)
    return _long(student, long, metered=metered)


def _outcome(student: Namespace, row: Any) -> dict[str, Any]:
    changed = False

    def blocks() -> Iterator[tuple[Tensor, Tensor]]:
        nonlocal changed
        for block in row:
            given, again = (
                [torch.tensor(part, dtype=torch.float64) for part in block] for _ in "12"
            )
            yield given[0], given[1]
            changed |= not all(map(torch.equal, given, again))

    return {
        "statistics": as_sent(student.online_softmax(scores for scores, _ in blocks())),
        "weighted": as_sent(student.weighted_sum(blocks())),
        "changed": changed,
    }


def _long(student: Namespace, long: Mapping[str, int], *, metered: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def statistics() -> None:
        found["statistics"] = as_sent(student.online_softmax(scores_alone(**long)))

    def weighted() -> None:
        found["weighted"] = as_sent(student.weighted_sum(long_row(**long)))

    of_scores = metered_rise(statistics, torch.zeros(1), metered=True, objects=True)
    rise = metered_rise(weighted, torch.zeros(1), metered=metered)
    return {**rise, **{f"scores_{name}": value for name, value in of_scores.items()}, **found}


def scores_alone(n_blocks: int, scores: int, width: int, seed: int) -> Iterator[Tensor]:
    """Yield blocks of scores without values, four times as long as those of `long_row`."""
    for block, _ in long_row(n_blocks, 4 * scores, 0, seed):
        yield block


def long_row(n_blocks: int, scores: int, width: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield blocks of float64 scores (n,) and values (n, width), made on demand."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(n_blocks):
        yield (
            torch.randn(scores, generator=generator, dtype=torch.float64).mul_(30),
            torch.randn(scores, width, generator=generator, dtype=torch.float64),
        )
