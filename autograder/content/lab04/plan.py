"""plan: which outputs to keep when layers are unequal."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.content.lab04.chains import (
    Chain,
    best_plan,
    least_budget,
    peak,
    root_segments,
    segments,
    time,
)
from autograder.content.lab04.heuristics import HEURISTICS, draw_chain, fewest_cuts, telling
from autograder.model.compare import are_outcomes, same, show
from autograder.model.task import NOT_WRITTEN, Answer, Case, Finding, Task

__all__ = ["plan"]

_FEASIBLE, _NEAR, _LEAST = "feasible everywhere", "within 1.2 of the least time", "least time"
_CALLS = 40


def _cases(rng: np.random.Generator) -> list[Case]:
    calls = [_call(rng) for _ in range(_CALLS)]
    # The same number of stages and budget as before, to catch plans cached by these alone.
    calls += [_backwards(call) for call in calls if _fits_forwards_only(call)][:6]
    # One stage; equal stages, for which the root of N is right; all times 0.
    for chain in (Chain([3], [5], [2]), Chain([1] * 16, [1] * 16, [1] * 16)):
        lowest = least_budget(chain)
        calls += [[*_listed(chain), budget] for budget in (lowest, lowest - 1, sum(chain.saved))]
    still = Chain([0] * 9, *_listed(draw_chain(rng, 9))[1:])
    calls.append([*_listed(still), least_budget(still)])
    # Times so short that they round to the same whole number.
    quick = draw_chain(rng, 16)
    quick = Chain([(t + 1) / 1024 for t in quick.times], quick.saved, quick.outputs)
    calls.append([*_listed(quick), (least_budget(quick) + sum(quick.saved)) // 2])
    # Small outputs and the smallest budget: no plan with few cuts fits.
    outputs = rng.integers(1, 4, 20)
    saved = outputs + rng.integers(90, 110, 20)
    many = Chain(rng.integers(1, 30, 20).tolist(), saved.tolist(), outputs.tolist())
    calls.append([*_listed(many), least_budget(many)])
    # Gigabytes: more than a solution's stand-in for infinity, and more than float32 resolves.
    large = draw_chain(rng, 16)
    large = Chain(large.times, _gigabytes(large.saved), _gigabytes(large.outputs))
    lowest = least_budget(large)
    calls += [[*_listed(large), budget] for budget in (lowest, lowest - 1)]
    for rule in HEURISTICS.values():
        chain, budget = telling(rng, rule)
        calls.append([*_listed(chain), budget])
    return [
        *(Case(tuple(plan.parts), {"calls": [call]}) for call in calls[:6]),
        # The first calls again: a mistake that explains a single call may not explain them all.
        Case(tuple(plan.parts), {"calls": calls}),
    ]


def _gigabytes(sizes: Sequence[int]) -> list[int]:
    return [size * (10**9 + 7) for size in sizes]


def _backwards(call: list[Any]) -> list[Any]:
    return [*(part[::-1] for part in call[:3]), call[3]]


def _fits_forwards_only(call: list[Any]) -> bool:
    """Tell whether the best plan exceeds the budget if the stages are reversed."""
    kept = best_plan(Chain(*call[:3]), call[3])
    return kept is not None and peak(Chain(*_backwards(call)[:3]), kept) > call[3]


def _listed(chain: Chain) -> list[Any]:
    return [list(chain.times), list(chain.saved), list(chain.outputs)]


def _call(rng: np.random.Generator) -> list[Any]:
    """A chain, and a budget that some plan just reaches, or that none reaches."""
    chain = draw_chain(rng, int(rng.integers(4, 25)))
    lowest = least_budget(chain)
    if rng.random() < 0.15:
        return [*_listed(chain), lowest - 1]
    if rng.random() < 0.2:
        return [*_listed(chain), lowest]
    kept = np.flatnonzero(rng.random(len(chain) - 1) < rng.uniform(0.1, 0.6)).tolist()
    return [*_listed(chain), peak(chain, kept)]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    calls = case.inputs["calls"]
    outcomes = answer.value
    if not are_outcomes(outcomes, len(calls)):
        return dict.fromkeys(case.parts, Finding(False, "The answers came back garbled."))
    found: dict[str, Finding] = {}
    explained = _explain(calls, outcomes)
    for call, outcome in zip(calls, outcomes, strict=True):
        for part, finding in _findings(Chain(*call[:3]), call[3], outcome).items():
            if part not in found or found[part].ok:  # the first failure is the one to show
                found[part] = finding
    return {
        part: finding if finding.ok else Finding(False, finding.said, finding.mistakes + explained)
        for part, finding in found.items()
    }


def _findings(chain: Chain, budget: int, outcome: Any) -> dict[str, Finding]:
    """The findings on one answer, part by part."""
    if tuple(outcome[:2]) == ("raised", "NotImplementedError"):
        return dict.fromkeys(plan.parts, NOT_WRITTEN)
    said = (
        f"For times {chain.times}, saved {chain.saved}, outputs {chain.outputs}, budget {budget}: "
    )
    best = best_plan(chain, budget)
    if best is None:
        if tuple(outcome[:2]) == ("raised", "ValueError"):
            return dict.fromkeys(plan.parts, Finding(True))
        raised = outcome[0] != "value"
        got = f"your function raised {outcome[1]}" if raised else f"got {show(outcome[1])}"
        said += f"expected a ValueError, but {got}."
        wrong = Finding(False, said, _over(chain, budget, _indices(outcome[1], len(chain))))
        return dict.fromkeys(plan.parts, wrong)
    if outcome[0] != "value":
        got = " ".join(map(str, outcome[1:]))[:200].rstrip()
        wrong = Finding(False, f"{said}the plan {best} fits, but your function raised {got}.")
        return dict.fromkeys(plan.parts, wrong)
    kept = _indices(outcome[1], len(chain))
    if kept is None:
        wrong = Finding(
            False, f"{said}{show(outcome[1])} isn't a list of strictly increasing indices."
        )
        return dict.fromkeys(plan.parts, wrong)
    if (needed := peak(chain, kept)) > budget:
        said += f"{kept} peaks at {needed}, over the budget."
        wrong = Finding(False, said, _over(chain, budget, kept))
        return dict.fromkeys(plan.parts, wrong)
    took, least = time(chain, kept), time(chain, best)
    slow = Finding(False, f"{said}{kept} takes {took}, and {best} only {least}.")
    return {
        _FEASIBLE: Finding(True),
        _NEAR: Finding(True) if 5 * took <= 6 * least else slow,
        _LEAST: Finding(True) if took <= least else slow,
    }


def _over(chain: Chain, budget: int, kept: list[int] | None) -> tuple[str, ...]:
    """The mistake in a plan over the budget whose segments would fit if nothing else were kept."""
    if kept is None or not kept:
        return ()
    largest = max(sum(chain.saved[first:last]) for first, last in segments(len(chain), kept))
    return ("kept_forgotten",) if largest <= budget else ()


def _indices(value: Any, n: int) -> list[int] | None:
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        return None
    kept = list(value)
    if any(type(index) is not int or not 0 <= index < n for index in kept):
        return None
    return kept if all(a < b for a, b in itertools.pairwise(kept)) else None


_NAMED = ("equal_segments", "greedy", "one_cut", "cheapest_outputs", "least_peak")

# A mistake's answer for a chain and a budget.
_MUTANTS: dict[str, Callable[[Chain, int], list[int] | None]] = {
    "root_of_n": lambda chain, budget: root_segments(chain),
    "keeps_all": lambda chain, budget: list(range(len(chain) - 1)),
    "below_the_budget": lambda chain, budget: best_plan(chain, budget - 1),
    "segment_starts": lambda chain, budget: _shifted(best_plan(chain, budget), 1),
    **{name: HEURISTICS[name] for name in _NAMED},
    "last_stage_kept": lambda chain, budget: _with_last(best_plan(chain, budget), len(chain)),
}


def _shifted(kept: list[int] | None, by: int) -> list[int] | None:
    return None if kept is None else [index + by for index in kept]


def _with_last(kept: list[int] | None, n: int) -> list[int] | None:
    return None if kept is None else sorted({*kept, n - 1})


def _explain(calls: Sequence[Sequence[Any]], outcomes: Sequence[Any]) -> tuple[str, ...]:
    pairs = [(Chain(*c[:3]), c[3], o) for c, o in zip(calls, outcomes, strict=True)]
    names = [
        name
        for name, mutant in _MUTANTS.items()
        if all(_agrees(mutant(chain, budget), outcome) for chain, budget, outcome in pairs)
    ]
    if _remembers(calls, outcomes):
        names.append("remembers")
    return (*names, *(["fewest_cuts"] if all(_has_fewest_cuts(*pair) for pair in pairs) else []))


def _remembers(calls: Sequence[Sequence[Any]], outcomes: Sequence[Any]) -> bool:
    """Tell whether plans depend only on the number of stages and the budget."""
    first: dict[tuple[int, Any], Any] = {}
    plans = [(c, one) for c, one in zip(calls, outcomes, strict=True) if one[0] == "value"]
    pairs = [(first.setdefault((len(c[0]), c[3]), one), one) for c, one in plans]
    return len(first) < len(pairs) and all(same(one, other) for one, other in pairs)


def _has_fewest_cuts(chain: Chain, budget: int, outcome: Any) -> bool:
    """Tell whether this is a plan with the fewest cuts, or correctly reports that none fits."""
    fewest = fewest_cuts(chain, budget)
    if fewest is None or outcome[0] != "value":
        return fewest is None and bool(outcome[0] == "raised")
    kept = _indices(outcome[1], len(chain))
    return kept is not None and len(kept) == len(fewest) and peak(chain, kept) <= budget


def _agrees(kept: list[int] | None, outcome: Any) -> bool:
    if kept is None:
        return bool(outcome[0] == "raised")
    if outcome[0] != "value":
        return False
    value = outcome[1].tolist() if isinstance(outcome[1], np.ndarray) else outcome[1]
    return same(kept, value)


plan = Task(
    id="lab04-plan",
    parts={_FEASIBLE: 2, _NEAR: 2, _LEAST: 1},
    defines=("plan",),
    probe="plan",
    cases=_cases,
    judge=_judge,
    mistakes={
        "remembers": "You return an earlier call's plan for other stages, because the number of "
        "stages and the budget are the same. What you remember also depends on the stages: forget "
        "it after each call.",
        "root_of_n": "You cut into segments of about sqrt(n) stages. Here stages aren't equal, "
        "and there is a budget: look at each stage's bytes and time.",
        "equal_segments": "You only try segments of equal length. Stages are not equal, so a cut "
        "may go anywhere: best after a small output.",
        "greedy": "You make each segment as long as fits, starting at the front. That may cut "
        "after a huge output, which then stays; a shorter segment can leave more room for all "
        "later ones.",
        "one_cut": "You cut at most once. If no single cut fits, or only a late one does, try "
        "more cuts.",
        "cheapest_outputs": "You keep the smallest outputs, wherever they are. It also matters "
        "where each segment begins and ends, and the last kept output should come early.",
        "least_peak": "You return the plan with the least peak, whatever the budget. Look for the "
        "least time that fits.",
        "fewest_cuts": "You take the fewest cuts. Two small outputs may take less memory than one "
        "large output and leave room for later stages: among all plans that end at an index, "
        "remember the one whose kept outputs have the smallest sum.",
        "keeps_all": "You keep every output, which recomputes almost every stage. Recompute only "
        "as much as the budget asks for.",
        "kept_forgotten": "You forget that the outputs kept before a segment are live while it "
        "runs.",
        "below_the_budget": "Your plans stay strictly below the budget. A peak equal to the "
        "budget fits.",
        "segment_starts": "You return the first stage of each segment. Return the last stage of "
        "each segment.",
        "last_stage_kept": "Your plan also keeps the last stage's output, so the last segment is "
        "recomputed needlessly.",
    },
    stretch=True,
)
