"""Plans by rules of thumb, and chains on which each rule is clearly worse than the best plan.

On random chains most rules are rarely worse: the fewest cuts on one chain in 250. So each rule has
a case built for it, which is drawn again until the rule fails on it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import numpy as np

from autograder.content.lab04.chains import (
    Chain,
    best_plan,
    equal_segments,
    least_budget,
    peak,
    time,
)

__all__ = ["HEURISTICS", "draw_chain", "fewest_cuts", "greedy", "telling"]

Rule = Callable[[Chain, int], list[int] | None]


def draw_chain(rng: np.random.Generator, n: int) -> Chain:
    """Unequal stages: some outputs are tiny, some times are 0."""
    outputs = [int(v) for v in rng.choice([1, 2, 5, 10, 20, 50, 100], n) * rng.integers(1, 9, n)]
    saved = [
        output + int(extra) for output, extra in zip(outputs, rng.integers(0, 200, n), strict=True)
    ]
    times = [int(v) for v in rng.integers(0, 30, n) * rng.integers(0, 4, n)]
    return Chain(times, saved, outputs)


def telling(rng: np.random.Generator, rule: Rule) -> tuple[Chain, int]:
    """Draw a chain and a budget for which the rule's plan is over, missing, or far too slow."""
    while True:
        chain, budget = _dear_or_cheap(rng) if rng.random() < 0.5 else _drawn(rng)
        best = best_plan(chain, budget)
        if best is not None and _fails(chain, budget, rule(chain, budget), time(chain, best)):
            return chain, budget


def _fails(chain: Chain, budget: int, kept: list[int] | None, least: int) -> bool:
    return kept is None or peak(chain, kept) > budget or 5 * time(chain, kept) > 6 * max(least, 1)


def _drawn(rng: np.random.Generator) -> tuple[Chain, int]:
    chain = draw_chain(rng, int(rng.integers(8, 25)))
    kept = np.flatnonzero(rng.random(len(chain) - 1) < rng.uniform(0.1, 0.5)).tolist()
    return chain, max(peak(chain, kept), least_budget(chain))


def _dear_or_cheap(rng: np.random.Generator) -> tuple[Chain, int]:
    """A chain that fits with few cuts after an expensive output, or more cuts after cheap ones.

    The expensive output stays until the end, and leaves no room to keep the slow stages' results.
    So the plan with the fewest cuts recomputes these, and a plan with one more cut doesn't.
    """
    # (saved, output of its last stage, time): cheap cuts end the 1st, 3rd and 4th piece, and the
    # expensive cut ends the 2nd; the 5th holds the slow stages.
    pieces = [(400, 4, 2), (450, 250, 2), (300, 6, 2), (300, 8, 2), (100, 20, 60), (700, 50, 4)]
    scale = int(rng.integers(1, 9))
    times: list[int] = []
    saved: list[int] = []
    outputs: list[int] = []
    for total, output, slow in pieces:
        parts = _split(rng, scale * int(total * rng.uniform(0.98, 1.02)), int(rng.integers(1, 4)))
        saved += parts
        outputs += [
            *parts[:-1],
            min(scale * output, parts[-1]),
        ]  # within a piece, every output is expensive
        times += [slow + int(extra) for extra in rng.integers(0, 3, len(parts))]
    return Chain(times, saved, outputs), scale * int(rng.integers(990, 1005))


def _split(rng: np.random.Generator, total: int, count: int) -> list[int]:
    shares = rng.dirichlet([20.0] * count)
    parts = [int(total * share) for share in shares[:-1]]
    return [*parts, total - sum(parts)]


# The rules. Each returns its plan, or None if it finds none.


def greedy(chain: Chain, budget: int) -> list[int] | None:
    """Starting from the front, makes each segment as long as fits."""
    kept: list[int] = []
    held = filled = 0
    for index in range(len(chain)):
        if held + filled + chain.saved[index] > budget and index > 0:
            kept.append(index - 1)
            held += chain.outputs[index - 1]
            filled = 0
        filled += chain.saved[index]
    return kept if peak(chain, kept) <= budget else None


def greedy_from_the_back(chain: Chain, budget: int) -> list[int] | None:
    """Starting from the back, makes each segment as long as fits, with the output before it."""
    kept: list[int] = []
    filled = 0
    for index in reversed(range(len(chain))):
        before = chain.outputs[index - 1] if index else 0
        if filled and filled + chain.saved[index] + before > budget:
            kept.insert(0, index)
            filled = 0
        filled += chain.saved[index]
    return kept if peak(chain, kept) <= budget else None


def fewest_cuts(chain: Chain, budget: int) -> list[int] | None:
    """The fastest plan among those with the fewest cuts."""
    ends: dict[int, tuple[int, list[int]]] = {-1: (0, [])}  # last cut: (held, plan), by rounds
    for _ in range(len(chain)):
        for last, (held, kept) in sorted(ends.items()):
            if held + sum(chain.saved[last + 1 :]) <= budget:
                return kept
        ends = _one_cut_more(chain, budget, ends)
    return None


def _one_cut_more(
    chain: Chain, budget: int, ends: dict[int, tuple[int, list[int]]]
) -> dict[int, tuple[int, list[int]]]:
    following: dict[int, tuple[int, list[int]]] = {}
    for last, (held, kept) in ends.items():
        for index in range(last + 1, len(chain) - 1):
            total = held + chain.outputs[index]
            if held + sum(chain.saved[last + 1 : index + 1]) > budget:
                break
            if index not in following or total < following[index][0]:
                following[index] = (total, [*kept, index])
    return following


def one_cut(chain: Chain, budget: int) -> list[int] | None:
    """No cut, or the best single one."""
    return _best_of(chain, budget, [[], *([index] for index in range(len(chain) - 1))])


def two_cuts(chain: Chain, budget: int) -> list[int] | None:
    """At most two cuts."""
    pairs = itertools.combinations(range(len(chain) - 1), 2)
    return one_cut(chain, budget) or _best_of(chain, budget, [list(pair) for pair in pairs])


def first_found(chain: Chain, budget: int) -> list[int] | None:
    """The right recursion, except that it takes the first way to each index, not the cheapest."""
    ways: dict[int, tuple[int, list[int]]] = {-1: (0, [])}
    for index in range(len(chain) - 1):
        for last, (held, kept) in list(ways.items()):
            if held + sum(chain.saved[last + 1 : index + 1]) <= budget:
                ways.setdefault(index, (held + chain.outputs[index], [*kept, index]))
    for last, (held, kept) in sorted(ways.items()):
        if held + sum(chain.saved[last + 1 :]) <= budget:
            return kept
    return None


def cheapest_outputs(chain: Chain, budget: int) -> list[int] | None:
    """The m cheapest outputs, for the best m."""
    return _best_of(chain, budget, _prefixes(chain, lambda index: chain.outputs[index]))


def best_ratios(chain: Chain, budget: int) -> list[int] | None:
    """The m outputs that are the smallest fraction of what their stages save, for the best m."""
    return _best_of(
        chain, budget, _prefixes(chain, lambda i: chain.outputs[i] / max(chain.saved[i], 1))
    )


def equal_bytes(chain: Chain, budget: int) -> list[int] | None:
    """Segments that save about the same bytes, for the best number of segments."""
    sums = list(itertools.accumulate(chain.saved))
    plans = []
    for count in range(1, len(chain) + 1):
        marks = [sums[-1] * part / count for part in range(1, count)]
        cuts = {min(int(np.searchsorted(sums, mark)), len(chain) - 2) for mark in marks}
        plans.append(sorted(cuts - {-1}))
    return _best_of(chain, budget, plans)


def adds_the_best(chain: Chain, budget: int) -> list[int] | None:
    """One cut after another, each where it lowers the peak most, until the plan fits."""
    kept: list[int] = []
    while peak(chain, kept) > budget:
        plans = [sorted({*kept, index}) for index in range(len(chain) - 1)]
        better = min(plans, key=lambda plan: peak(chain, plan), default=kept)
        if peak(chain, better) >= peak(chain, kept):
            return None
        kept = better
    return kept


def drops_from_the_back(chain: Chain, budget: int) -> list[int] | None:
    """All outputs except those that can be dropped, trying the last ones first."""
    return _dropped(chain, budget, reversed(range(len(chain) - 1)))


def drops_the_dearest(chain: Chain, budget: int) -> list[int] | None:
    """All outputs except those that can be dropped, trying the largest ones first."""
    order = sorted(range(len(chain) - 1), key=lambda index: -chain.outputs[index])
    return _dropped(chain, budget, order)


def least_peak(chain: Chain, budget: int) -> list[int] | None:
    """The plan with the lowest peak, whatever the budget."""
    lowest = least_budget(chain)
    return best_plan(chain, lowest) if lowest <= budget else None


def _prefixes(chain: Chain, key: Callable[[int], float]) -> list[list[int]]:
    order = sorted(range(len(chain) - 1), key=key)
    return [sorted(order[:count]) for count in range(len(chain))]


def _dropped(chain: Chain, budget: int, order: Iterable[int]) -> list[int] | None:
    kept = list(range(len(chain) - 1))
    for index in order:
        fewer = [other for other in kept if other != index]
        if peak(chain, fewer) <= max(budget, peak(chain, kept)):
            kept = fewer
    return kept if peak(chain, kept) <= budget else None


def _best_of(chain: Chain, budget: int, plans: list[list[int]]) -> list[int] | None:
    fitting = [kept for kept in plans if peak(chain, kept) <= budget]
    return min(fitting, key=lambda kept: time(chain, kept), default=None)


HEURISTICS: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        greedy,
        greedy_from_the_back,
        fewest_cuts,
        one_cut,
        two_cuts,
        first_found,
        cheapest_outputs,
        best_ratios,
        equal_segments,
        equal_bytes,
        adds_the_best,
        drops_from_the_back,
        drops_the_dearest,
        least_peak,
    )
}
