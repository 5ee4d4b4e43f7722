"""Exercise: an all-reduce around a ring; its sums, its traffic, and its memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from autograder.content.lab08.forbidden import NO_COLLECTIVES
from autograder.content.lab08.sent import between
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.labs.compare import show
from peakmem.probes.lab08.ring import checksums, given, values

__all__ = ["ring_all_reduce"]

_SUMS, _BYTES, _MEMORY = "sums", "bytes", "memory"
_MIB = 2**20
_WORLD, _LENGTH = 4, 6 * _MIB
_GIVEN_BYTES = 4 * _LENGTH
_MOST_EXTRA_BYTES = 2 * _GIVEN_BYTES // _WORLD
_STEPS = 2 * (_WORLD - 1)
_LEAST_SENT_BYTES = _STEPS * _GIVEN_BYTES  # by all ranks together: no all-reduce sends less
_MOST_SENT_BYTES = _STEPS * (_GIVEN_BYTES // _WORLD + 1024)  # by each rank

_OF_VALUES = ("unchanged", "mean", "one_neighbour", "one_rank", "not_spread", "adds_again")

Results = list[list[Any]]  # for each rank, its tensors


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(world: int) -> Case:
        some = world * int(rng.integers(2, 20))
        lengths = [some, some + int(rng.integers(1, world)), world, world - 1, 1, 0, some]
        sizes = {"world": world, "lengths": lengths}
        return Case((_SUMS,), {**sizes, "seed": int(rng.integers(2**31)), "metered": False})

    large = {"world": _WORLD, "lengths": [_LENGTH], "seed": int(rng.integers(2**31)), "large": True}
    budget = Budget(_GIVEN_BYTES + _MOST_EXTRA_BYTES + _MIB)
    return [*map(case, (2, 3, 4)), Case((_BYTES, _MEMORY), large, budget=budget)]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    value = answer.value if isinstance(answer.value, dict) else {}
    if not case.budget:
        return {_SUMS: _sums(case.inputs, value.get("ranks"))}
    if not _is_right_of_large(case.inputs["seed"], value.get("ranks")):
        said = f"The sums of {_LENGTH:,} values over {_WORLD} ranks differ."
        return dict.fromkeys(case.parts, Finding(False, said, _OF_VALUES, follows=True))
    sent = between(answer, _LEAST_SENT_BYTES, _MOST_SENT_BYTES, _too_much_sent)
    return {_BYTES: sent, _MEMORY: _memory(answer)}


def _sums(inputs: Mapping[str, Any], got: Any) -> Finding:
    world, lengths = inputs["world"], inputs["lengths"]
    begun = [[x.numpy() for x in given(lengths, r, inputs["seed"])] for r in range(world)]
    right = [np.sum(tensors, axis=0) for tensors in zip(*begun, strict=True)]
    if not _has_form(got, begun):
        return Finding(False, "The answers came back garbled, or tensors have the wrong shape.")
    for number, length in enumerate(lengths):
        for rank in range(world):
            if not np.array_equal(got[rank][number], right[number]):
                said = (
                    f"With {world} ranks and {length} values, rank {rank} has "
                    f"{show(got[rank][number])} instead of {show(right[number])}."
                )
                return Finding(False, said, tuple(_explanations(begun, right, got)))
    return Finding(True)


def _has_form(got: Any, begun: Results) -> bool:
    return (
        isinstance(got, list)
        and len(got) == len(begun)
        and all(isinstance(tensors, list) and len(tensors) == len(begun[0]) for tensors in got)
        and all(
            isinstance(came, np.ndarray) and came.shape == given.shape
            for tensors, of_rank in zip(got, begun, strict=True)
            for came, given in zip(tensors, of_rank, strict=True)
        )
    )


def _explanations(begun: Results, right: list[Any], got: Results) -> Iterator[str]:
    world = len(begun)

    def every(matches: Callable[[int, int], Any]) -> bool:
        """Whether all tensors with a value or more per rank match; only these tell mistakes."""
        numbers = [n for n, tensor in enumerate(right) if len(tensor) >= world]
        return all(matches(rank, number) for rank in range(world) for number in numbers)

    if every(lambda r, n: np.array_equal(got[r][n], begun[r][n])):
        yield "unchanged"
    if every(lambda r, n: np.allclose(got[r][n], right[n] / world)):
        yield "mean"
    if every(lambda r, n: np.array_equal(got[r][n], begun[r][n] + begun[(r - 1) % world][n])):
        yield "one_neighbour"
    if every(lambda r, n: np.array_equal(got[r][n], right[n]) == (r == 0)):
        yield "one_rank"
    failing = [
        len(tensor)
        for n, tensor in enumerate(right)
        if not all(np.array_equal(tensors[n], tensor) for tensors in got)
    ]
    if failing and max(failing) < world:
        yield "few_values"
    elif failing and all(length % world for length in failing):
        yield "rest_left_out"
    if _is_scattered(begun, right, got):
        yield "not_spread"
    if any(every(_like_a_ring(begun, got, last)) for last in range(world - 1, 2 * world - 2)):
        yield "adds_again"


def _like_a_ring(begun: Results, got: Results, last: int) -> Callable[[int, int], bool]:
    """Return a test of whether a rank's tensor comes from a ring that adds up to step `last`."""
    return lambda r, n: np.array_equal(got[r][n], _ring(begun, n, last)[r])


def _is_scattered(begun: Results, right: list[Any], got: Results) -> bool:
    """Whether each sum is in some rank, no rank has all, and other values are partial sums."""
    told = [n for n, tensor in enumerate(right) if len(tensor) >= len(got)]
    somewhere = all(np.any([tensors[n] == right[n] for tensors in got], axis=0).all() for n in told)
    nowhere_all = not any(np.array_equal(tensors[n], right[n]) for tensors in got for n in told)
    return somewhere and nowhere_all and all(_are_sums_of_some(begun, got, n) for n in told)


def _are_sums_of_some(begun: Results, got: Results, number: int) -> bool:
    """Whether each value is a sum in which no rank counts twice."""
    given = [tensors[number] for tensors in begun]
    some = [sum(c) for k in range(1, len(given) + 1) for c in combinations(given, k)]
    return all(np.any([tensors[number] == s for s in some], axis=0).all() for tensors in got)


def _ring(begun: Results, number: int, last: int) -> list[Any]:
    """Each rank's tensor after a ring whose steps add up to step `last`."""
    world = len(begun)
    chunks = [np.array_split(tensors[number].copy(), world) for tensors in begun]
    for step in range(2 * world - 2):
        sent = [chunks[rank][(rank - step) % world].copy() for rank in range(world)]
        for rank in range(world):
            into = chunks[rank][(rank - step - 1) % world]
            into[:] = sent[rank - 1] + (into if step <= last else 0)
    return [np.concatenate(parts) for parts in chunks]


@lru_cache(maxsize=16)
def _right_of_large(seed: int) -> list[list[int]]:
    x = values(_LENGTH, 0, seed)
    for rank in range(1, _WORLD):
        x += values(_LENGTH, rank, seed)
    return [checksums(x)]


def _is_right_of_large(seed: int, got: Any) -> bool:
    return bool(got == [_right_of_large(seed)] * _WORLD)


def _too_much_sent(sent: tuple[int, ...]) -> Finding:
    said = (
        f"With {_WORLD} ranks and {_GIVEN_BYTES / _MIB:.0f} MiB on each, a rank may send "
        f"{_MOST_SENT_BYTES / _MIB:.1f} MiB. Yours send "
        f"{', '.join(f'{each / _MIB:.1f}' for each in sorted(sent))} MiB."
    )
    star = min(sent) < 0.5 * max(sent)
    return Finding(False, said, ("star",) if star else ("whole_tensors",))


def _memory(answer: Answer) -> Finding:
    rise = answer.metered("rise_bytes")
    if not answer.breaks_budget(rise, _GIVEN_BYTES + _MOST_EXTRA_BYTES):
        return Finding(True)
    took = "" if rise is None else f" Your code takes {(rise - _GIVEN_BYTES) / _MIB:.1f} MiB."
    said = f"In addition to x, a rank may take {_MOST_EXTRA_BYTES / _MIB:.0f} MiB here.{took}"
    if rise is not None and rise < 2 * _GIVEN_BYTES:
        return Finding(False, said, ("several_buffers",))
    return Finding(False, said, ("whole_copy", "star", "whole_tensors"))


ring_all_reduce = Task(
    id="lab08-ring_all_reduce",
    parts={_SUMS: 2, _BYTES: 2, _MEMORY: 1},
    defines=("ring_all_reduce",),
    probe="ring_all_reduce",
    cases=_cases,
    judge=_judge,
    mistakes={
        "unchanged": "x is unchanged. Write the sums into x itself: x += y changes it, "
        "x = x + y makes another tensor.",
        "mean": "Your results are means. x must become the sum over ranks.",
        "one_neighbour": "Each rank has added only one neighbour's values. Pass the partial sums "
        "on, world - 1 times.",
        "one_rank": "Only rank 0 has the sums. Send them to all ranks.",
        "not_spread": "Each chunk's sum is on one rank only. Pass the finished chunks around in a "
        "second round.",
        "adds_again": "Your second round adds finished chunks. They must replace a rank's values: "
        "use copy_.",
        "few_values": "Your function fails for lengths below world, where some chunks are empty. "
        "Send empty chunks too, or skip them on both sides.",
        "rest_left_out": "Your function fails for lengths that world doesn't divide. "
        "x.tensor_split(world) gives world chunks for any length.",
        "several_buffers": "Several chunks are alive in addition to x. A buffer of one chunk is "
        "enough.",
        "whole_copy": "A copy of x, or as many bytes, is alive. A buffer of one chunk is enough.",
        "star": "One rank sends far more than the others: everything goes through it. In a ring "
        "each rank sends the same.",
        "whole_tensors": "Each step sends too much. Send one chunk per step, 1 / world of x.",
    },
    ban=NO_COLLECTIVES,
    trust="measured",
    ranks=True,
    seconds=60.0,
)
