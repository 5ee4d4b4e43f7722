"""Exercise: softmax's maximum, sum and weighted sum for a row that arrives block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from autograder.content.lab10.forbidden import NO_FUSED_ATTENTION
from autograder.model.compare import show
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.labs.compare import close
from peakmem.probes.lab10 import long_row, scores_alone

__all__ = ["online_softmax", "statistics_of", "weighted_of"]

_MIB = 2**20
_LONG = {"n_blocks": 32, "scores": 512, "width": 128}  # 16 MiB of values in all
_MOST_BYTES = 3 * _MIB  # as the notebook says: six blocks of values
_MOST_SCORES_BYTES = 32 * 8 * 4 * 512 // 2  # as the notebook says: half of all scores
_VALUE_BYTES = 8 * 512 * 128

Row = Sequence[tuple[Sequence[float], Sequence[Sequence[float]]]]
_close = close(1e-9, 1e-12)


def statistics_of(row: Row) -> tuple[float, float]:
    """The maximum and the sum of exp(score - maximum), computed on the whole row at once."""
    scores = [score for block, _ in row for score in block]
    largest = max(scores)
    if largest == -math.inf:
        return -math.inf, 0.0
    return largest, math.fsum(math.exp(score - largest) for score in scores)


def weighted_of(row: Row) -> list[float]:
    """The mean of the values, weighted by exp(score); zeros where all weights are 0."""
    largest, total = statistics_of(row)
    pairs = [pair for scores, values in row for pair in zip(scores, values, strict=True)]
    width = len(pairs[0][1])
    if total == 0:
        return [0.0] * width
    weights = [math.exp(score - largest) / total for score, _ in pairs]
    return [
        math.fsum(w * value[i] for w, (_, value) in zip(weights, pairs, strict=True))
        for i in range(width)
    ]


# Mistakes, as students make them: (statistics, weighted sum) of a row's blocks.


def _rescaled_by(
    factor: Callable[[float], float], of_values: Callable[[float], float] | None = None
) -> Callable[[Row], tuple[Any, Any]]:
    """Rescale sums by these functions of the maximum's change; the right one is exp."""

    @np.errstate(over="ignore", invalid="ignore")  # a factor above 1 may be infinite
    def mutant(row: Row) -> tuple[Any, Any]:
        largest, total, result = -math.inf, 0.0, np.zeros(len(row[0][1][0]))
        for scores, values in row:
            old, largest = largest, max(largest, *scores)
            if largest == -math.inf:
                continue
            weights = np.exp(np.array(scores) - largest)
            if old > -math.inf:
                total *= factor(old - largest)
                result *= (of_values or factor)(old - largest)
            total += weights.sum()
            result = result + weights @ np.array(values)
        return (largest, float(total)), list(result / total if total else result)

    return mutant


def _unchanged(change: float) -> float:
    return 1.0


def _not_divided(row: Row) -> tuple[Any, Any]:
    right = statistics_of(row)
    return right, [right[1] * value for value in weighted_of(row)]


def _naive(row: Row) -> tuple[Any, Any]:
    """Without a maximum: exp of the scores themselves."""
    scores = np.concatenate([np.array(block) for block, _ in row])
    values = np.concatenate([np.array(block) for _, block in row])
    with np.errstate(all="ignore"):
        weights = np.exp(scores)
        mean = weights @ values / weights.sum()
        return (float(scores.max()), float(weights.sum())), [float(value) for value in mean]


def _last_block(row: Row) -> tuple[Any, Any]:
    return statistics_of(row[-1:]), weighted_of(row[-1:])


def _mean_of_blocks(row: Row) -> tuple[Any, Any]:
    means = np.mean([weighted_of([block]) for block in row], axis=0)
    return statistics_of(row), [float(value) for value in means]


def _begins_at_a_billion(row: Row) -> tuple[Any, Any]:
    """The maximum starts at -1e9, so if all scores are lower, all weights are 0."""
    if -math.inf < statistics_of(row)[0] < -1e9:
        return (-math.inf, 0.0), [0.0] * len(row[0][1][0])
    return statistics_of(row), weighted_of(row)


_MUTANTS: Mapping[str, Callable[[Row], tuple[Any, Any]]] = {
    "not_rescaled": _rescaled_by(_unchanged),
    "values_not_rescaled": _rescaled_by(math.exp, _unchanged),
    "upside_down": _rescaled_by(lambda change: float(np.exp(-change))),
    "not_divided": _not_divided,
    "naive": _naive,
    "last_block": _last_block,
    "mean_of_blocks": _mean_of_blocks,
    "begins_too_high": _begins_at_a_billion,
}


def _cases(rng: np.random.Generator) -> list[Case]:
    def row(
        n_blocks: int, low: float, high: float, length: int | None = None, width: int = 3
    ) -> list[Any]:
        blocks = []
        for _ in range(n_blocks):
            n = length or int(rng.integers(1, 6))
            values = [[float(v) for v in rng.normal(size=width)] for _ in range(n)]
            blocks.append(([float(s) for s in rng.uniform(low, high, n)], values))
        return blocks

    rising = [row(1, 10.0 * i, 10.0 * i + 5)[0] for i in range(4)]
    falling = rising[::-1]
    huge = row(4, 700, 1500)
    low = row(4, -2000, -1000)
    lowest = [([-math.inf, -1e12], row(1, 0, 1, 2)[0][1]), ([-1e13], row(1, 0, 1, 1)[0][1])]
    masked = row(5, -3, 3)
    nothing = -math.inf
    for index in (0, 1, 3):  # whole blocks, at the start too
        masked[index] = ([nothing] * len(masked[index][0]), masked[index][1])
    masked[2][0][0] = nothing
    empty = row(3, 0, 1)
    empty = [([nothing] * len(scores), values) for scores, values in empty]
    groups = [
        [row(4, -3, 3), rising, falling],
        [huge, low, lowest],
        [masked, row(1, -1, 1, 1), row(6, -1, 1, 1), row(3, -1, 1, width=1)],
        [empty],
    ]
    long = {**_LONG, "seed": int(rng.integers(2**31))}
    return [
        *(Case(("value",), {"rows": rows}) for rows in groups),
        Case(("value",), {"long": long}, budget=Budget(_MOST_BYTES + _MIB)),
    ]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    if case.budget is not None:
        return {"value": _long(case.inputs["long"], answer)}
    return {"value": _finding(case.inputs["rows"], answer.value)}


def _finding(rows: Sequence[Row], value: Any) -> Finding:
    if not _are_records(value, len(rows)):
        return Finding(False, "The answers came back garbled.")
    for row, got in zip(rows, value, strict=True):
        expected = (statistics_of(row), weighted_of(row))
        found = (got["statistics"], got["weighted"])
        for name, right, mine in zip(
            ("online_softmax", "weighted_sum"), expected, found, strict=True
        ):
            if not _close(right, mine):
                written = show([scores for scores, _ in row], 200)
                said = f"{name} of the blocks {written}: expected {show(right)}, got {show(mine)}."
                return Finding(False, said, tuple(_explain(rows, value)))
        if got.get("changed") is not False:
            return Finding(False, "Your functions change a block.", ("blocks_changed",))
    return Finding(True)


def _are_records(value: Any, count: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == count
        and all(isinstance(v, dict) and {"statistics", "weighted"} <= v.keys() for v in value)
    )


def _explain(rows: Sequence[Row], value: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    pairs = [(got["statistics"], got["weighted"]) for got in value]
    right = [(statistics_of(row), weighted_of(row)) for row in rows]

    def agrees(part: int, made: Sequence[tuple[Any, Any]]) -> bool:
        return all(_close(m[part], got[part]) for m, got in zip(made, pairs, strict=True))

    for name, mutant in _MUTANTS.items():
        made = [mutant(row) for row in rows]
        # One function may be right.
        if all(agrees(part, made) or agrees(part, right) for part in range(2)):
            yield name
    nans = [_has_nan(part) for pair in pairs for part in pair]
    if any(nans) and any(_has_masked_block(row) for row in rows):
        yield "nothing_less_nothing"


def _has_nan(value: Any) -> bool:
    parts: Iterable[Any] = np.ravel(np.asarray(value, dtype=object))
    return any(isinstance(part, float) and math.isnan(part) for part in parts)


def _has_masked_block(row: Row) -> bool:
    return any(max(scores) == -math.inf for scores, _ in row)


def _long(long: Mapping[str, int], answer: Answer) -> Finding:
    if not _are_records([answer.value], 1):
        return Finding(False, "The answers came back garbled.")
    if answer.breaks_budget(answer.metered("rise_bytes"), _MOST_BYTES):
        said = f"{_LONG['n_blocks']} blocks of {_VALUE_BYTES / _MIB:g} MiB may take 3 MiB at once."
        return Finding(False, said, ("whole_row",))
    of_scores = answer.metered("scores_rise_bytes")
    if of_scores is None:
        return Finding(False, "The answers came back garbled.")
    if of_scores > _MOST_SCORES_BYTES:
        said = "online_softmax keeps its blocks: more than half of all scores are alive at once."
        return Finding(False, said, ("whole_row",))
    statistics, weighted = _right_of_long(long["seed"])
    got = answer.value
    if _close(statistics, got["statistics"]) and _close(weighted, got["weighted"]):
        return Finding(True)
    return Finding(False, "On a long row the results differ.", tuple(_MUTANTS), follows=True)


@lru_cache(maxsize=16)
def _right_of_long(seed: int) -> tuple[tuple[float, float], list[float]]:
    alone = np.concatenate(list(scores_alone(**{**_LONG, "seed": seed})))
    blocks = list(long_row(**{**_LONG, "seed": seed}))
    scores, values = map(np.concatenate, zip(*blocks, strict=True))
    weights = np.exp(scores - scores.max())
    weighted = [float(v) for v in weights @ values / weights.sum()]
    return (float(alone.max()), float(np.exp(alone - alone.max()).sum())), weighted


online_softmax = Task(
    id="lab10-online_softmax",
    parts={"value": 3},
    defines=("online_softmax", "weighted_sum"),
    probe="online_softmax",
    cases=_cases,
    judge=_judge,
    mistakes={
        "not_rescaled": "When a larger maximum comes, your sums so far are relative to the old "
        "one. Multiply both the sum and the weighted sum by exp(old - new).",
        "values_not_rescaled": "You rescale the sum of the weights, but not the weighted sum of "
        "the values. Multiply both by exp(old - new).",
        "upside_down": "You rescale by exp(new - old), which grows. Multiply by exp(old - new), "
        "which is at most 1.",
        "not_divided": "Divide your weighted sum by the sum of the weights at the end.",
        "nothing_less_nothing": "-inf minus -inf is NaN, and so is 0 / 0. While every score so "
        "far is -inf, the sum is 0: don't rescale it or divide by it.",
        "naive": "exp of a score of 1000 is inf. Subtract the largest score so far before exp.",
        "begins_too_high": "Your maximum starts at a finite number, or you replace -inf by one. "
        "All scores may be lower: start at -inf.",
        "blocks_changed": "Don't change a block: another function reads it, too. Compute with new "
        "tensors.",
        "last_block": "Your result uses only the last block: add each block to the sum so far.",
        "mean_of_blocks": "You average the blocks' results. Weight each block by its sum of "
        "exp(score).",
        "whole_row": "You keep all blocks of a row. Keep the maximum, the sum and the weighted sum "
        "so far, and free each block.",
    },
    ban=NO_FUSED_ATTENTION,
    trust="measured",
)
