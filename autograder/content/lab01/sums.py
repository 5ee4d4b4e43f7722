"""careful_sum: a sum in float16 whose error doesn't grow with the number of terms.

The student's process sends each array's answer and the arguments of every addition. This side
replays them: whatever the student's process does, the answer counts only if these additions are
allowed and one of them gives it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autograder.model.restrictions import Ban
from autograder.model.task import NOT_WRITTEN, Answer, Case, Finding, Task

__all__ = ["careful_sum"]

Half = NDArray[np.float16]

# Functions that sum exactly or in more than 16 bits: with their sum, `add` only has to hit it.
_NO_OTHER_SUM = Ban(
    names=frozenset(
        {".accumulate", ".cumsum", ".dot", ".einsum", ".inner", ".matmul", ".mean", ".average"}
        | {".nancumsum", ".nanmean", ".nansum", ".reduceat", ".sum", ".trapezoid", ".vdot"}
        | {".cumulative_sum", ".convolve", ".tensordot", ".vecdot"}
    ),
    modules=frozenset(
        {"builtins.sum", "math.fsum", "math.sumprod", "operator.matmul", "itertools.accumulate"}
        | {"decimal", "fractions", "statistics", "torch", "einops"}
    ),
    reason="Here only add(a, b) may add: a sum computed elsewhere would tell you the result.",
)


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(*arrays: Any, fixed: bool = False) -> Case:
        return Case(("sum",), {"arrays": [np.asarray(a, np.float16) for a in arrays]}, fixed=fixed)

    def power_tree(levels: int) -> NDArray[Any]:
        """One large number, to which each level of a tree of additions adds a small sum.

        The numbers are sorted, so that sorting them first doesn't change the tree.
        """
        small = [np.full(2**level, 0.498 / 2**level) for level in reversed(range(levels))]
        return np.concatenate([*small, [1024]])

    equal = np.full(int(rng.integers(700, 1000)), rng.uniform(5, 15))
    large = [900.0, -700.0, 4000.0]
    mixed = rng.permutation(np.concatenate([rng.uniform(0, 0.2, 300), large]))
    return [
        case(equal, rng.normal(0, 3, 300), mixed),
        case([], [0.25], [-0.0], [1.5, -0.5], fixed=True),
        case(np.full(1000, 0.3), np.full(50, 2.0**-24), fixed=True),
        case(power_tree(9), power_tree(9)[::-1], fixed=True),
    ]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    outcomes = answer.value
    arrays = case.inputs["arrays"]
    if not isinstance(outcomes, list) or len(outcomes) != len(arrays):
        return {"sum": Finding(False, "The answers came back garbled.")}
    findings = (_judge_one(x, outcome) for x, outcome in zip(arrays, outcomes, strict=True))
    failed = [finding for finding in findings if not finding.ok]
    if not failed:
        return {"sum": Finding(True)}
    shared = [m for m in failed[0].mistakes if all(m in f.mistakes for f in failed)]
    return {"sum": Finding(False, failed[0].said, tuple(shared))}


def _judge_one(x: Half, outcome: Any) -> Finding:
    if not isinstance(outcome, dict) or outcome.keys() != {"outcome", "additions"}:
        return Finding(False, "The answers came back garbled.")
    which = f"For an array of {len(x)} numbers: "
    told = outcome["outcome"]
    kind, *rest = told if isinstance(told, (list, tuple)) and told else ("",)
    if not isinstance(kind, str):
        return Finding(False, "The answers came back garbled.")
    if kind == "changed":
        return Finding(False, f"{which}your function changed it in place.")
    if kind == "raised" and rest[0] == "NotImplementedError":
        return NOT_WRITTEN
    if kind == "raised":
        mistakes = ("empty_array",) if len(x) == 0 else ()
        return Finding(False, f"{which}your function raised {rest[0]}: {rest[1]}", mistakes)
    if kind != "value" or len(rest) != 1:
        return Finding(False, "The answers came back garbled.")
    additions = outcome["additions"]
    if not _is_allowed(x, additions):
        return Finding(False, f"{which}an argument of add was neither an element nor a sum.")
    (value,) = rest
    if not isinstance(value, (int, float)):
        return Finding(False, f"{which}expected a number, got {value!r}.", ("no_number",))
    return _judge_value(x, float(value), additions, which)


def _judge_value(x: Half, value: float, additions: Half, which: str) -> Finding:
    sums = _sums(additions)
    if len(x) == 0:
        ok = value == 0 and len(sums) == 0
        return Finding(ok, f"{which}expected 0.0 without an addition.", ("empty_array",))
    if len(sums) > 4 * len(x):
        said = (
            f"{which}expected at most {4 * len(x)} additions, but your function made {len(sums)}."
        )
        return Finding(False, said, ("too_many_additions",))
    if value not in sums.astype(float):
        said = f"{which}you returned {value!r}, but no call of add returned this number."
        mistakes = ("one_element_not_added", "not_by_add")[len(x) > 1 :]
        return Finding(False, said, mistakes)
    exact, size = math.fsum(x.tolist()), math.fsum(np.abs(x).tolist())
    allowed = 4 * 2.0**-11 * size + 2.0**-25
    if abs(value - exact) <= allowed:
        if unused := _unused(x, additions, value):
            said = (
                f"{which}you returned {value:.6g}, which is right, but your additions leave out "
                f"{unused} elements. Only `add` may make the sum, from all of them."
            )
            return Finding(False, said)
        return Finding(True)
    said = f"{which}expected {exact:.6g} within {allowed:.2g}, but got {value:.6g}."
    return Finding(False, said, tuple(name for name, sum_ in _recognisable(x) if sum_ == value))


def _is_allowed(x: Half, pairs: Any) -> bool:
    """Whether these are pairs, added one after another, whose numbers all may be added.

    These are the elements of x, earlier sums, the negatives of both, and 0.
    """
    if (
        not isinstance(pairs, np.ndarray)
        or pairs.dtype != np.float16
        or pairs.ndim != 2
        or pairs.shape[1] != 2
    ):
        return False
    sums = _sums(pairs)
    # For each of the 65,536 patterns, how many additions must come before its use.
    since = np.full(2**16, len(sums) + 1)
    since[_magnitudes(sums)[::-1]] = np.arange(1, len(sums) + 1)[::-1]  # first one wins
    since[_magnitudes(x)] = 0
    since[0] = 0
    needed = since[_magnitudes(pairs)].max(axis=1, initial=0)
    return bool((needed <= np.arange(len(sums))).all())


def _sums(pairs: Half) -> Half:
    with np.errstate(over="ignore", invalid="ignore"):
        sums: Half = pairs[:, 0] + pairs[:, 1]
    return sums


def _unused(x: Half, pairs: Half, value: float) -> int:
    """Count the elements that no chain of these additions leads from to the value.

    Who knows the sum from elsewhere can reach it by doubling one element and adding the multiples.
    An addition tells of its numbers only the values. So of two with one size, each counts as made
    of all that either is made of, which lets every honest sum pass.
    """
    made_of = {pattern: 1 << bit for bit, pattern in enumerate(set(_magnitudes(x).tolist()) - {0})}
    every = (1 << len(made_of)) - 1
    rows = np.column_stack([_magnitudes(pairs), _magnitudes(_sums(pairs))])
    for one, other, total in rows.tolist():
        made_of[total] = made_of.get(total, 0) | made_of.get(one, 0) | made_of.get(other, 0)
    (pattern,) = _magnitudes(np.array([value], np.float16)).tolist()
    # Parts that cancel to 0 needn't be added: it makes no difference.
    return (every & ~made_of.get(pattern, 0) & ~made_of.get(0, 0)).bit_count()


def _magnitudes(values: Half) -> NDArray[np.uint16]:
    return np.ascontiguousarray(values).view(np.uint16) & np.uint16(0x7FFF)


def _recognisable(x: Half) -> Iterator[tuple[str, float]]:
    """The sums that common mistakes give for an array."""
    with np.errstate(over="ignore", invalid="ignore"):
        yield "one_after_another", float(np.add.accumulate(x, dtype=np.float16)[-1])
        yield "one_after_another", float(np.add.accumulate(x[::-1], dtype=np.float16)[-1])
        yield "sorted_first", float(np.add.accumulate(_by_size(x), dtype=np.float16)[-1])
        yield "sorted_first", float(np.add.accumulate(np.sort(x), dtype=np.float16)[-1])
        yield "pairs", float(_in_pairs(x))
        yield "loss_summed_apart", float(_losses_apart(x))
        yield "compensation_added", float(_compensation_added(x))


def _by_size(x: Half) -> Half:
    order: Half = x[np.argsort(np.abs(x), kind="stable")]
    return order


def _in_pairs(x: Half) -> np.float16:
    while len(x) > 1:
        odd = x[len(x) // 2 * 2 :]
        x = np.concatenate([x[0 : len(x) // 2 * 2 : 2] + x[1::2], odd])
    return np.float16(x[0])


def _losses_apart(x: Half) -> np.float16:
    """The losses of all additions, summed in float16 and added back once at the end."""
    total = losses = np.float16(0)
    for element in x:
        exact = float(total) + float(element)
        total = np.float16(exact)
        losses = np.float16(losses + np.float16(exact - float(total)))
    return np.float16(total + losses)


def _compensation_added(x: Half) -> np.float16:
    """Kahan's sum with the wrong sign: the excess of an addition is added once more."""
    total = too_much = np.float16(0)
    for element in x:
        y = np.float16(element + too_much)
        t = np.float16(total + y)
        too_much = np.float16(np.float16(t - total) - y)
        total = t
    return total


careful_sum = Task(
    id="lab01-careful_sum",
    stretch=True,
    parts={"sum": 2},
    defines=("careful_sum",),
    probe="careful_sum",
    cases=_cases,
    judge=_judge,
    ban=_NO_OTHER_SUM,
    mistakes={
        "pairs": "A tree of additions loses up to half a gap at each of its log2(n) levels, and "
        "for some arrays these losses add up. Carry each addition's loss to the next addition "
        "instead.",
        "sorted_first": "Sorting helps if sizes differ, but a thousand equal numbers still stall. "
        "Carry each addition's loss to the next addition.",
        "one_after_another": "Adding one element after another stalls: once the sum is large, "
        "small elements are less than half a gap. Carry each addition's loss to the next addition.",
        "loss_summed_apart": "You sum the additions' losses in float16 and add this sum at the "
        "end. It grows and stalls too; add each loss back at the next addition.",
        "compensation_added": "Mind the sign: (t - total) - y is the excess in t, so subtract it "
        "from the next element instead of adding it.",
        "too_many_additions": "Use at most 4 additions per element.",
        "one_element_not_added": "The result must be a sum that add returned, even for an array "
        "of one element: add(x[0], 0).",
        "not_by_add": "The result must be a sum that add returned.",
        "empty_array": "The sum of no elements is 0.0, without an addition.",
        "no_number": "The result must be a number.",
    },
)
