# %% right: dynamic_program
"""For each index the least sum of kept outputs."""


def plan(stages, budget_bytes):
    n = len(stages)
    least = {-1: (0, [])}  # for each kept index: the least sum of kept outputs, and the plan
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            total = held + stages[j].output_bytes
            if needed <= budget_bytes and (j not in least or total < least[j][0]):
                least[j] = (total, [*kept, j])
    for last in sorted(least):  # the sooner the last cut, the less is recomputed
        held, kept = least[last]
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget_bytes:
            return kept
    raise ValueError(f"no plan fits {budget_bytes} bytes")


# %% right: frontier
"""Forward over all pairs of kept bytes and time that no other beats; numpy's indices."""

import numpy as np


def plan(stages, budget_bytes):
    n = len(stages)
    saved = np.cumsum([0] + [s.saved_bytes for s in stages])
    ends = [[(0, ())]] + [[] for _ in range(n)]  # ends[i]: plans whose last segment ends before i
    for end in range(1, n + 1):
        for start in range(end):
            for held, kept in ends[start]:
                if held + saved[end] - saved[start] <= budget_bytes:
                    ends[end].append((held + stages[end - 1].output_bytes, (*kept, end - 1)))
        ends[end] = sorted(ends[end])[:1]
    for start in range(n + 1):
        for held, kept in ends[start]:
            if held + saved[n] - saved[start] <= budget_bytes:
                return np.array(kept, dtype=int)
    raise ValueError("no plan")


# %% right: recursion
"""Recursion with a cache from the last segment to the front."""

import functools

from peakmem.errors import Infeasible


def plan(stages, budget_bytes):
    saved = [0]
    for stage in stages:
        saved.append(saved[-1] + stage.saved_bytes)

    @functools.lru_cache(None)
    def best(end):
        """Cheapest kept outputs with one at `end`, as (bytes, indices)."""
        if end < 0:
            return 0, ()
        ways = []
        for before in range(-1, end):
            found = best(before)
            if found and found[0] + saved[end + 1] - saved[before + 1] <= budget_bytes:
                ways.append((found[0] + stages[end].output_bytes, (*found[1], end)))
        return min(ways) if ways else None

    for end in range(-1, len(stages)):
        found = best(end)
        if found and found[0] + saved[-1] - saved[end + 1] <= budget_bytes:
            return found[1]
    raise Infeasible("nothing fits", least_budget_bytes=None)


# %% wrong: adds_the_best
"""Adds the cut that lowers the peak most, until it fits."""


def peak(stages, kept):
    starts = [0] + [i + 1 for i in kept]
    ends = [i + 1 for i in kept] + [len(stages)]
    return max(
        sum(stages[i].output_bytes for i in kept if i < a) + sum(s.saved_bytes for s in stages[a:b])
        for a, b in zip(starts, ends)
    )


def plan(stages, budget_bytes):
    kept = []
    while peak(stages, kept) > budget_bytes:
        plans = [sorted({*kept, index}) for index in range(len(stages) - 1)]
        better = min(plans, key=lambda kept: peak(stages, kept), default=kept)
        if peak(stages, better) >= peak(stages, kept):
            raise ValueError("no plan")
        kept = better
    return kept


# %% wrong: below_the_budget
"""Stays below the budget."""


def plan(stages, budget_bytes):
    n = len(stages)
    least = {-1: (0, [])}  # for each kept index: the least sum of kept outputs, and the plan
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            total = held + stages[j].output_bytes
            if needed < budget_bytes and (j not in least or total < least[j][0]):
                least[j] = (total, [*kept, j])
    for last in sorted(least):  # the sooner the last cut, the less is recomputed
        held, kept = least[last]
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) < budget_bytes:
            return kept
    raise ValueError(f"no plan fits {budget_bytes} bytes")


# %% wrong: cheapest_outputs
"""Keeps the m cheapest outputs, for the best m."""


def peak(stages, kept):
    starts = [0] + [i + 1 for i in kept]
    ends = [i + 1 for i in kept] + [len(stages)]
    return max(
        sum(stages[i].output_bytes for i in kept if i < a) + sum(s.saved_bytes for s in stages[a:b])
        for a, b in zip(starts, ends)
    )


def seconds(stages, kept):
    again = stages[: kept[-1] + 1] if kept else []
    return sum(s.forward_time for s in stages) + sum(s.forward_time for s in again)


def plan(stages, budget_bytes):
    order = sorted(range(len(stages) - 1), key=lambda index: stages[index].output_bytes)
    plans = [sorted(order[:m]) for m in range(len(stages))]
    fitting = [kept for kept in plans if peak(stages, kept) <= budget_bytes]
    if not fitting:
        raise ValueError("no plan")
    return min(fitting, key=lambda kept: seconds(stages, kept))


# %% wrong: equal_bytes
"""Segments that save about the same, for the best number of them."""


def peak(stages, kept):
    starts = [0] + [i + 1 for i in kept]
    ends = [i + 1 for i in kept] + [len(stages)]
    return max(
        sum(stages[i].output_bytes for i in kept if i < a) + sum(s.saved_bytes for s in stages[a:b])
        for a, b in zip(starts, ends)
    )


def seconds(stages, kept):
    again = stages[: kept[-1] + 1] if kept else []
    return sum(s.forward_time for s in stages) + sum(s.forward_time for s in again)


def plan(stages, budget_bytes):
    plans = []
    for m in range(1, len(stages) + 1):
        kept, filled, total = [], 0, sum(stage.saved_bytes for stage in stages)
        for index, stage in enumerate(stages[:-1]):
            filled += stage.saved_bytes
            if filled >= total / m:
                kept.append(index)
                filled = 0
        plans.append(kept)
    fitting = [kept for kept in plans if peak(stages, kept) <= budget_bytes]
    if not fitting:
        raise ValueError("no plan")
    return min(fitting, key=lambda kept: seconds(stages, kept))


# %% wrong: equal_segments
"""The best of all segments of equal length."""


def peak(stages, kept):
    starts = [0] + [i + 1 for i in kept]
    ends = [i + 1 for i in kept] + [len(stages)]
    return max(
        sum(stages[i].output_bytes for i in kept if i < a) + sum(s.saved_bytes for s in stages[a:b])
        for a, b in zip(starts, ends)
    )


def seconds(stages, kept):
    again = stages[: kept[-1] + 1] if kept else []
    return sum(s.forward_time for s in stages) + sum(s.forward_time for s in again)


def plan(stages, budget_bytes):
    n = len(stages)
    plans = [list(range(k - 1, n - 1, k)) for k in range(1, n + 1)]
    fitting = [kept for kept in plans if peak(stages, kept) <= budget_bytes]
    if not fitting:
        raise ValueError("no plan")
    return min(fitting, key=lambda kept: seconds(stages, kept))


# %% wrong: fewest_cuts
"""Of the plans with the fewest cuts, the quickest. [earns 2]"""


def plan(stages, budget_bytes):
    n = len(stages)
    ends = {-1: (0, [])}
    for _ in range(n):
        for last, (held, kept) in sorted(ends.items()):
            if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget_bytes:
                return kept
        more = {}
        for last, (held, kept) in ends.items():
            for j in range(last + 1, n - 1):
                needed = held + sum(stage.saved_bytes for stage in stages[last + 1 : j + 1])
                total = held + stages[j].output_bytes
                if needed <= budget_bytes and (j not in more or total < more[j][0]):
                    more[j] = (total, [*kept, j])
        ends = more
    raise ValueError("no plan")


# %% wrong: first_found
"""The right recursion, but the first way to an index stays. [earns 2]"""


def plan(stages, budget_bytes):
    n = len(stages)
    least = {-1: (0, [])}
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            if needed <= budget_bytes and j not in least:
                least[j] = (held + stages[j].output_bytes, [*kept, j])
    for last, (held, kept) in sorted(least.items()):
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget_bytes:
            return kept
    raise ValueError(f"no plan fits {budget_bytes} bytes")


# %% wrong: greedy
"""Each segment as long as fits, from the front."""


def peak(stages, kept):
    starts = [0] + [i + 1 for i in kept]
    ends = [i + 1 for i in kept] + [len(stages)]
    return max(
        sum(stages[i].output_bytes for i in kept if i < a) + sum(s.saved_bytes for s in stages[a:b])
        for a, b in zip(starts, ends)
    )


def seconds(stages, kept):
    again = stages[: kept[-1] + 1] if kept else []
    return sum(s.forward_time for s in stages) + sum(s.forward_time for s in again)


def plan(stages, budget_bytes):
    kept, held, filled = [], 0, 0
    for index, stage in enumerate(stages):
        if index and held + filled + stage.saved_bytes > budget_bytes:
            kept.append(index - 1)
            held += stages[index - 1].output_bytes
            filled = 0
        filled += stage.saved_bytes
    if peak(stages, kept) > budget_bytes:
        raise ValueError("no plan")
    return kept


# %% wrong: keeps_all
"""Keeps every output."""


def plan(stages, budget_bytes):
    return list(range(len(stages) - 1))


# %% wrong: kept_forgotten
"""Forgets the outputs that were kept before."""


def plan(stages, budget_bytes):
    n = len(stages)
    least = {-1: (0, [])}  # for each kept index: the least sum of kept outputs, and the plan
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            total = held
            if needed <= budget_bytes and (j not in least or total < least[j][0]):
                least[j] = (total, [*kept, j])
    for last in sorted(least):  # the sooner the last cut, the less is recomputed
        held, kept = least[last]
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget_bytes:
            return kept
    raise ValueError(f"no plan fits {budget_bytes} bytes")


# %% wrong: last_stage_kept
"""Keeps the last stage's output too. [earns 2]"""


def plan(stages, budget_bytes):
    n = len(stages)
    least = {-1: (0, [])}  # for each kept index: the least sum of kept outputs, and the plan
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            total = held + stages[j].output_bytes
            if needed <= budget_bytes and (j not in least or total < least[j][0]):
                least[j] = (total, [*kept, j])
    for last in sorted(least):  # the sooner the last cut, the less is recomputed
        held, kept = least[last]
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget_bytes:
            return sorted({*kept, len(stages) - 1})
    raise ValueError(f"no plan fits {budget_bytes} bytes")


# %% wrong: latest_cut
"""Feasible, but with the last cut as late as can be. [earns 2]"""


def plan(stages, budget_bytes):
    n = len(stages)
    least = {-1: (0, [])}  # for each kept index: the least sum of kept outputs, and the plan
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            total = held + stages[j].output_bytes
            if needed <= budget_bytes and (j not in least or total < least[j][0]):
                least[j] = (total, [*kept, j])
    for last in sorted(least, reverse=True):
        held, kept = least[last]
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget_bytes:
            return kept
    raise ValueError(f"no plan fits {budget_bytes} bytes")


# %% wrong: least_peak
"""The plan of the least peak, found by halving the budget. [earns 2]"""


def best(stages, budget):
    n = len(stages)
    least = {-1: (0, [])}
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            total = held + stages[j].output_bytes
            if needed <= budget and (j not in least or total < least[j][0]):
                least[j] = (total, [*kept, j])
    for last, (held, kept) in sorted(least.items()):
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget:
            return kept
    return None


def plan(stages, budget_bytes):
    low, high = -1, sum(stage.saved_bytes for stage in stages)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if best(stages, middle) is not None else (middle, high)
    if high > budget_bytes:
        raise ValueError("no plan")
    return best(stages, high)


# %% wrong: one_cut
"""No cut, or the best single one."""


def peak(stages, kept):
    starts = [0] + [i + 1 for i in kept]
    ends = [i + 1 for i in kept] + [len(stages)]
    return max(
        sum(stages[i].output_bytes for i in kept if i < a) + sum(s.saved_bytes for s in stages[a:b])
        for a, b in zip(starts, ends)
    )


def seconds(stages, kept):
    again = stages[: kept[-1] + 1] if kept else []
    return sum(s.forward_time for s in stages) + sum(s.forward_time for s in again)


def plan(stages, budget_bytes):
    plans = [[], *([index] for index in range(len(stages) - 1))]
    fitting = [kept for kept in plans if peak(stages, kept) <= budget_bytes]
    if not fitting:
        raise ValueError("no plan")
    return min(fitting, key=lambda kept: seconds(stages, kept))


# %% wrong: raises_nothing
"""Returns None where no plan fits."""


def plan(stages, budget_bytes):
    n = len(stages)
    least = {-1: (0, [])}  # for each kept index: the least sum of kept outputs, and the plan
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            total = held + stages[j].output_bytes
            if needed <= budget_bytes and (j not in least or total < least[j][0]):
                least[j] = (total, [*kept, j])
    for last in sorted(least):  # the sooner the last cut, the less is recomputed
        held, kept = least[last]
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget_bytes:
            return kept
    return None


# %% wrong: root_of_n
"""Segments of about root N stages, whatever the budget."""

import math


def plan(stages, budget_bytes):
    k = max(round(math.sqrt(len(stages))), 1)
    return list(range(k - 1, len(stages) - 1, k))


# %% wrong: segment_starts
"""Returns the stages that begin a segment."""


def plan(stages, budget_bytes):
    n = len(stages)
    least = {-1: (0, [])}  # for each kept index: the least sum of kept outputs, and the plan
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            total = held + stages[j].output_bytes
            if needed <= budget_bytes and (j not in least or total < least[j][0]):
                least[j] = (total, [*kept, j])
    for last in sorted(least):  # the sooner the last cut, the less is recomputed
        held, kept = least[last]
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget_bytes:
            return [index + 1 for index in kept]
    raise ValueError(f"no plan fits {budget_bytes} bytes")


# %% wrong: two_cuts
"""At most two cuts."""
import itertools


def peak(stages, kept):
    starts = [0] + [i + 1 for i in kept]
    ends = [i + 1 for i in kept] + [len(stages)]
    return max(
        sum(stages[i].output_bytes for i in kept if i < a) + sum(s.saved_bytes for s in stages[a:b])
        for a, b in zip(starts, ends)
    )


def seconds(stages, kept):
    again = stages[: kept[-1] + 1] if kept else []
    return sum(s.forward_time for s in stages) + sum(s.forward_time for s in again)


def plan(stages, budget_bytes):
    last = range(len(stages) - 1)
    plans = [list(cuts) for m in range(3) for cuts in itertools.combinations(last, m)]
    fitting = [kept for kept in plans if peak(stages, kept) <= budget_bytes]
    if not fitting:
        raise ValueError("no plan")
    return min(fitting, key=lambda kept: seconds(stages, kept))


# %% right: remembers_by_stages
"""A cached recursion over tuples of stages, which have to be hashable for it."""

from functools import lru_cache


@lru_cache(maxsize=None)
def cheapest(stages):
    """The least sum of kept outputs of a plan that keeps the last of these stages, by budget."""

    @lru_cache(maxsize=None)
    def within(budget_bytes):
        best = (0, ()) if not stages else None
        needed = 0
        for first in range(len(stages) - 1, -1, -1):
            needed += stages[first].saved_bytes
            before = cheapest(stages[:first])(budget_bytes)
            if before and before[0] + needed <= budget_bytes:
                total = before[0] + stages[-1].output_bytes
                if best is None or total < best[0]:
                    best = (total, (*before[1], len(stages) - 1))
        return best

    return within


def plan(stages, budget_bytes):
    stages = tuple(stages)
    for end in range(len(stages) + 1):
        found = cheapest(stages[:end])(budget_bytes)
        if found and found[0] + sum(s.saved_bytes for s in stages[end:]) <= budget_bytes:
            return list(found[1])
    raise ValueError(f"no plan fits {budget_bytes} bytes")


# %% wrong: remembers
"""Remembers plans by number of stages and budget, in a default argument."""

def plan(stages, budget_bytes: int, cache={}) -> list[int]:
    n = len(stages)
    if (n, budget_bytes) in cache:
        return cache[n, budget_bytes]

    def segment_bytes(first, last):
        return sum(stage.saved_bytes for stage in stages[first : last + 1])

    least = {-1: (0, [])}
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            if held + segment_bytes(i + 1, j) <= budget_bytes:
                total = held + stages[j].output_bytes
                if j not in least or total < least[j][0]:
                    least[j] = (total, [*kept, j])
    for last, (held, kept) in sorted(least.items()):
        if held + segment_bytes(last + 1, n - 1) <= budget_bytes:
            cache[n, budget_bytes] = kept
            return kept
    raise ValueError(f"no plan fits {budget_bytes} bytes")


# %% wrong: five_cuts
"""The best plan with at most five cuts."""

from itertools import combinations


def plan(stages, budget_bytes):
    n = len(stages)
    pre = [0]
    for s in stages:
        pre.append(pre[-1] + s.saved_bytes)
    best = None

    def fits(kept):
        first = held = 0
        for j in (*kept, n - 1):
            if held + pre[j + 1] - pre[first] > budget_bytes:
                return False
            held += stages[j].output_bytes
            first = j + 1
        return True

    rounds = {-1: {0: ()}}
    found = [((), 0)]
    level = {-1: (0, ())}
    if fits(()):
        return []
    cand = []
    for _ in range(5):
        nxt = {}
        for i, (held, kept) in level.items():
            for j in range(i + 1, n - 1):
                if held + pre[j + 1] - pre[i + 1] > budget_bytes:
                    break
                t = held + stages[j].output_bytes
                if j not in nxt or t < nxt[j][0]:
                    nxt[j] = (t, kept + (j,))
        level = nxt
        cand += [
            (j, kept)
            for j, (held, kept) in level.items()
            if held + pre[n] - pre[j + 1] <= budget_bytes
        ]
    if not cand:
        raise ValueError("none")
    return list(min(cand)[1])


# %% right: shortest_path
"""A heap of (last index, bytes held), as in Dijkstra's search."""

import heapq
from itertools import accumulate


def plan(stages, budget_bytes):
    n = len(stages)
    saved = [0, *accumulate(stage.saved_bytes for stage in stages)]
    queue, seen = [(0, 0, ())], set()
    while queue:
        start, held, kept = heapq.heappop(queue)
        if held + saved[n] - saved[start] <= budget_bytes:
            return list(kept)
        if start in seen:
            continue
        seen.add(start)
        for end in range(start + 1, n):
            if held + saved[end] - saved[start] > budget_bytes:
                break
            heapq.heappush(queue, (end, held + stages[end - 1].output_bytes, (*kept, end - 1)))
    raise ValueError("nothing fits")


# %% wrong: whole_times
"""Compares times as whole numbers. [earns 4]"""


def plan(stages, budget_bytes):
    n = len(stages)
    least = {-1: (0, [])}  # for each kept index: the least sum of kept outputs, and the plan
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            total = held + stages[j].output_bytes
            if needed <= budget_bytes and (j not in least or total < least[j][0]):
                least[j] = (total, [*kept, j])
    best, best_time = None, None
    for last, (held, kept) in least.items():
        again = int(sum(stage.forward_time for stage in stages[: last + 1]))
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget_bytes:
            if best is None or again <= best_time:
                best, best_time = kept, again
    if best is None:
        raise ValueError(f"no plan fits {budget_bytes} bytes")
    return best


# %% wrong: billion_for_infinity
"""Begins with sums of a billion bytes, which stand for infinity."""


def plan(stages, budget_bytes):
    n = len(stages)
    least = [(10**9, [])] * n
    for j in range(n):
        for i in range(-1, j):
            held, kept = least[i] if i >= 0 else (0, [])
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            total = held + stages[j].output_bytes
            if needed <= budget_bytes and total < least[j][0]:
                least[j] = (total, [*kept, j])
    for last in range(-1, n):
        held, kept = least[last] if last >= 0 else (0, [])
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget_bytes:
            return kept
    raise ValueError(f"no plan fits {budget_bytes} bytes")


# %% wrong: float32
"""Adds bytes up in float32."""
import numpy as np


def plan(stages, budget_bytes):
    n = len(stages)
    saved = np.cumsum([0] + [stage.saved_bytes for stage in stages], dtype=np.float32)
    least = {-1: (0, [])}
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            total = held + stages[j].output_bytes
            fits = held + saved[j + 1] - saved[i + 1] <= budget_bytes
            if fits and (j not in least or total < least[j][0]):
                least[j] = (total, [*kept, j])
    for last, (held, kept) in sorted(least.items()):
        if held + saved[n] - saved[last + 1] <= budget_bytes:
            return kept
    raise ValueError(f"no plan fits {budget_bytes} bytes")

# %% right: heap
"""A search by bytes with a heap; returns an array."""


import heapq, numpy as np
def plan(stages, budget_bytes):
    n = len(stages)
    best = None
    time = [0]
    for s in stages:
        time.append(time[-1] + s.forward_time)
    frontier = [(0, -1, ())]
    least = {}
    while frontier:
        held, i, kept = heapq.heappop(frontier)
        if i in least:
            continue
        least[i] = held, kept
        seg = 0
        for j in range(i + 1, n):
            seg += stages[j].saved_bytes
            if held + seg > budget_bytes:
                break
            heapq.heappush(frontier, (held + stages[j].output_bytes, j, (*kept, j)))
    fits = [j for j, (held, _) in least.items() if held + sum(s.saved_bytes for s in stages[j + 1 :]) <= budget_bytes]
    if not fits:
        raise ValueError("nothing fits")
    return np.array(least[min(fits, key=lambda j: (time[j + 1], j))][1], dtype=int)
