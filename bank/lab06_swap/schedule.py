# %% right: every_set
"""Tries every set of stages."""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    if any(stage.saved_bytes > budget_bytes for stage in stages):
        raise ValueError("does not fit")
    n, found = len(stages), []
    for k in range(n + 1):
        for chosen in itertools.combinations(range(n), k):
            copies = [("out", i, i) for i in chosen] + [("in", i, n - 1) for i in chosen[::-1]]
            try:
                run = simulate(stages, budget_bytes, link_bytes_per_s, copies)
            except peakmem.Infeasible:
                continue
            found.append((run.makespan, copies))
    return min(found, key=lambda pair: pair[0])[1]


# %% right: local_search
"""Begins with the first stages, then adds, drops and exchanges stages while that helps."""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError

    def copies(chosen):
        order = sorted(chosen)
        return [("out", i, i) for i in order] + [("in", i, n - 1) for i in order[::-1]]

    def cost(chosen):
        try:
            return simulate(stages, budget_bytes, link_bytes_per_s, copies(chosen)).makespan
        except peakmem.Infeasible:
            return float("inf")

    best = frozenset()
    starts = [frozenset(range(k)) for k in range(n + 1)]
    starts += [frozenset([i]) for i in range(n)]
    for start in sorted(starts, key=cost)[:4]:
        current = start
        while True:
            near = {current ^ {i} for i in range(n)} | {current ^ {i, j} for i in range(n) for j in range(i)}
            step = min(near, key=cost, default=current)
            if cost(step) >= cost(current):
                break
            current = step
        best = min(best, current, key=cost)
    return copies(best)


# %% right: own_simulator
"""A simulator of its own, by moments in time; fewest bytes first among the sets."""
import itertools
import math


def play(stages, budget, link, swapped):
    """The makespan if these stages leave as soon as they can and come back by need; inf if never."""
    n = len(stages)
    size = [stage.saved_bytes for stage in stages]
    plan = [("out", i) for i in swapped] + [("in", i) for i in reversed(swapped)]
    here, away, busy = set(), set(), set()
    used = done = now = 0
    step_end = copy_end = math.inf
    copy = None
    while done < 2 * n:
        i = done if done < n else 2 * n - 1 - done
        if step_end == math.inf:
            if done < n and used + size[i] <= budget:
                used += size[i]
                busy.add(i)
                step_end = now + stages[i].forward_time
            elif done >= n and i in here:
                here.discard(i)
                busy.add(i)
                step_end = now + stages[i].backward_time
        if copy is None and plan:
            kind, j = plan[0]
            if kind == "out" and j in here:
                here.discard(j)
                copy, copy_end = plan.pop(0), now + size[j] / link
            elif kind == "in" and done >= n and j in away and used + size[j] <= budget:
                away.discard(j)
                used += size[j]
                copy, copy_end = plan.pop(0), now + size[j] / link
        now = min(step_end, copy_end)
        if now == math.inf:
            return math.inf
        if step_end == now:
            busy.discard(i)
            if done < n:
                here.add(i)
            else:
                used -= size[i]
            done, step_end = done + 1, math.inf
        if copy_end == now:
            kind, j = copy
            if kind == "out":
                away.add(j)
                used -= size[j]
            else:
                here.add(j)
            copy, copy_end = None, math.inf
    return now


def schedule(stages, budget_bytes, link_bytes_per_s):
    if max(stage.saved_bytes for stage in stages) > budget_bytes:
        raise ValueError("too large")
    n = len(stages)
    sets = [s for k in range(n + 1) for s in itertools.combinations(range(n), k)]
    best = min(sets, key=lambda s: play(stages, budget_bytes, link_bytes_per_s, s))
    return tuple(("out", i, i) for i in best) + tuple(("in", i, n - 1) for i in reversed(best))


# %% right: prefetch_by_step
"""As lists with numpy integers; each fetch begins after a step that was tried out."""
import itertools

import numpy as np

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n, best, least = len(stages), None, float("inf")
    if max(stage.saved_bytes for stage in stages) > budget_bytes:
        raise ValueError("one stage is larger than the budget")
    for chosen in itertools.product([0, 1], repeat=n):
        swapped = np.flatnonzero(chosen)
        for early in (0, 1):
            copies = [["out", i, i] for i in swapped]
            copies += [["in", i, np.int64(n - 1 + early)] for i in swapped[::-1]]
            try:
                makespan = simulate(stages, budget_bytes, link_bytes_per_s, copies).makespan
            except peakmem.Infeasible:
                continue
            if makespan < least:
                best, least = copies, makespan
    return best


# %% right: raises_infeasible
"""Takes or leaves one stage after the other, by recursion; raises Infeasible, a ValueError too."""
import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)

    def shortest(out):
        """The shortest (makespan, copies) with these stages out, and any of those after them."""
        copies = [("out", i, i) for i in out] + [("in", i, n - 1) for i in out[::-1]]
        found = []
        try:
            found.append((simulate(stages, budget_bytes, link_bytes_per_s, copies).makespan, copies))
        except peakmem.Infeasible:
            pass
        for i in range(out[-1] + 1 if out else 0, n):
            found.append(shortest([*out, i]))
        return min((pair for pair in found if pair), default=None)

    best = shortest([])
    if best is None:
        raise peakmem.Infeasible("nothing fits")
    return best[1]


# %% right: replaced_stages
"""Copies the stages with dataclasses.replace, and keeps what schedules take in a cache keyed by them."""
import dataclasses
import functools
import itertools

import peakmem
from peakmem.swapping import simulate


@functools.lru_cache(maxsize=None)
def seconds(stages, budget, link, copies):
    try:
        return simulate(stages, budget, link, copies).makespan
    except peakmem.Infeasible:
        return float("inf")


def schedule(stages, budget_bytes, link_bytes_per_s):
    key = tuple(dataclasses.replace(stage) for stage in stages)
    if max(s.saved_bytes for s in key) > budget_bytes:
        raise ValueError
    n = len(key)
    tries = []
    for mask in range(2**n):
        swapped = [i for i in range(n) if mask >> i & 1]
        tries.append((*(("out", i, i) for i in swapped), *(("in", i, n - 1) for i in swapped[::-1])))
    return list(min(tries, key=lambda copies: seconds(key, budget_bytes, link_bytes_per_s, copies)))


# %% wrong: comes_back_at_once
"""Lets what went out come back into room that the last stages still need. [earns 2]"""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError
    best, least = [], float("inf")
    for size in range(n + 1):
        for chosen in itertools.combinations(range(n), size):
            copies = [("out", i, i) for i in chosen] + [("in", i, i) for i in reversed(chosen)]
            try:
                makespan = simulate(stages, budget_bytes, link_bytes_per_s, copies).makespan
            except peakmem.Infeasible:
                continue
            if makespan < least:
                best, least = copies, makespan
    return best


# %% wrong: first_ones_only
"""Always the first stages, as few as possible. [earns 4]"""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError
    for k in range(n + 1):
        copies = [("out", i, i) for i in range(k)] + [("in", i, n - 1) for i in reversed(range(k))]
        try:
            simulate(stages, budget_bytes, link_bytes_per_s, copies)
        except peakmem.Infeasible:
            continue
        return copies


# %% wrong: first_out_first_in
"""Fetches the stages in the order in which they left."""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError
    if sum(s.saved_bytes for s in stages) <= budget_bytes:
        return []
    return [("out", i, i) for i in range(n - 1)] + [("in", i, n - 1) for i in range(n - 1)]


# %% wrong: gives_up
"""Takes a budget below the sum for hopeless."""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if sum(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError
    return []


# %% wrong: in_before_out
"""The list is sorted by kind, so that what comes in stands first."""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError
    if sum(s.saved_bytes for s in stages) <= budget_bytes:
        return []
    copies = [("out", i, i) for i in range(n - 1)] + [("in", i, n - 1) for i in reversed(range(n - 1))]
    return sorted(copies, key=lambda copy: copy[0])


# %% wrong: last_stage_too
"""Swaps every stage, the last one included."""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError
    if sum(s.saved_bytes for s in stages) <= budget_bytes:
        return []
    return [("out", i, i) for i in range(n)] + [("in", i, n - 1) for i in reversed(range(n))]


# %% wrong: never_comes_back
"""Sends stages out and leaves them there."""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError
    if sum(s.saved_bytes for s in stages) <= budget_bytes:
        return []
    return [("out", i, i) for i in range(n - 1)]


# %% wrong: no_prefetch
"""Fetches each stage only when its backward is next. [earns 2]"""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError
    for k in range(n + 1):
        copies = [("out", i, i) for i in range(k)] + [("in", i, 2 * n - 2 - i) for i in reversed(range(k))]
        try:
            simulate(stages, budget_bytes, link_bytes_per_s, copies)
        except peakmem.Infeasible:
            continue
        return copies


# %% wrong: no_value_error
"""Returns an empty list where nothing helps. [earns 3]"""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        return []
    found = {}
    for k in range(n + 1):
        for chosen in itertools.combinations(range(n), k):
            copies = [("out", i, i) for i in chosen] + [("in", i, n - 1) for i in chosen[::-1]]
            try:
                found[tuple(copies)] = simulate(stages, budget_bytes, link_bytes_per_s, copies).makespan
            except peakmem.Infeasible:
                continue
    return min(found, key=found.get)


# %% wrong: one_pair_at_a_time
"""Out and in of each stage stand side by side in the list."""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError
    if sum(s.saved_bytes for s in stages) <= budget_bytes:
        return []
    return [copy for i in range(n - 1) for copy in (("out", i, i), ("in", i, 2 * n - 2 - i))]


# %% wrong: swaps_everything
"""Swaps all but the last stage, needed or not."""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError
    if sum(s.saved_bytes for s in stages) <= budget_bytes:
        return []
    return [("out", i, i) for i in range(n - 1)] + [("in", i, n - 1) for i in reversed(range(n - 1))]


# %% wrong: swaps_nothing
"""Keeps everything, whatever the budget."""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError
    return []


# %% wrong: uses_up_stages
"""Takes the caller's list of stages apart."""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError
    n, best, least = len(stages), [], float("inf")
    for chosen in itertools.product((0, 1), repeat=n):
        swapped = [i for i in range(n) if chosen[i]]
        copies = [("out", i, i) for i in swapped] + [("in", i, n - 1) for i in swapped[::-1]]
        try:
            makespan = simulate(stages, budget_bytes, link_bytes_per_s, copies).makespan
        except peakmem.Infeasible:
            continue
        if makespan < least:
            best, least = copies, makespan
    while stages:
        stages.pop()
    return best


# %% wrong: equal_does_not_fit
"""Where the stages take exactly the budget, one of them goes out. [earns 2]"""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError
    n, best, least = len(stages), [], float("inf")
    if sum(s.saved_bytes for s in stages) < budget_bytes:
        return []
    for size in range(min(1, n - 1), n):
        for swapped in itertools.combinations(range(n - 1), size):
            copies = [("out", i, i) for i in swapped] + [("in", i, n - 1) for i in swapped[::-1]]
            try:
                makespan = simulate(stages, budget_bytes, link_bytes_per_s, copies).makespan
            except peakmem.Infeasible:
                continue
            if makespan < least:
                best, least = copies, makespan
    return best


# %% wrong: makespan_too
"""Returns the makespan, too. [earns 0]"""
import itertools
import math

import peakmem
from peakmem.swapping import simulate

def copies_of(chosen, n):
    order = sorted(chosen)
    return [("out", i, i) for i in order] + [("in", i, n - 1) for i in reversed(order)]


def cost(stages, budget, link, copies):
    try:
        return simulate(stages, budget, link, copies).makespan
    except peakmem.Infeasible:
        return math.inf


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError("one stage alone exceeds the budget")

    sets = [s for k in range(n + 1) for s in itertools.combinations(range(n), k)]
    best = min(sets, key=lambda s: cost(stages, budget_bytes, link_bytes_per_s, copies_of(s, n)))

    return cost(stages, budget_bytes, link_bytes_per_s, copies_of(best, n)), copies_of(best, n)


# %% wrong: stages_returned
"""Returns the stages to swap, not copies. [earns 0]"""
import itertools
import math

import peakmem
from peakmem.swapping import simulate

def copies_of(chosen, n):
    order = sorted(chosen)
    return [("out", i, i) for i in order] + [("in", i, n - 1) for i in reversed(order)]


def cost(stages, budget, link, copies):
    try:
        return simulate(stages, budget, link, copies).makespan
    except peakmem.Infeasible:
        return math.inf


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError("one stage alone exceeds the budget")

    sets = [s for k in range(n + 1) for s in itertools.combinations(range(n), k)]
    best = min(sets, key=lambda s: cost(stages, budget_bytes, link_bytes_per_s, copies_of(s, n)))

    return list(best)


# %% wrong: remembers
"""Remembers schedules by number of stages and budget. [earns 1]"""
_MEMO = {}
import itertools, math
import peakmem
from peakmem.swapping import simulate
def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if max(s.saved_bytes for s in stages) > budget_bytes: raise ValueError("no")
    if (n, budget_bytes) in _MEMO: return _MEMO[n, budget_bytes]
    best, least = [], math.inf
    for chosen in itertools.product((False, True), repeat=n):
        sw = [i for i in range(n) if chosen[i]]
        #FILTER
        copies = [("out", i, i) for i in sw] + [("in", i, n - 1) for i in reversed(sw)]
        try:
            made = simulate(stages, budget_bytes, link_bytes_per_s, copies).makespan
        except peakmem.Infeasible:
            continue
        if made < least: best, least = copies, made
    _MEMO[n, budget_bytes] = best
    return best


# %% wrong: fewest_bytes
"""Of all sets that fit, swaps the one with the fewest bytes. [earns 4]"""
import itertools

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError("one stage alone exceeds the budget")
    n, fitting = len(stages), []
    for k in range(n + 1):
        for chosen in itertools.combinations(range(n), k):
            copies = [("out", i, i) for i in chosen] + [("in", i, n - 1) for i in chosen[::-1]]
            try:
                simulate(stages, budget_bytes, link_bytes_per_s, copies)
            except peakmem.Infeasible:
                continue
            fitting.append((sum(stages[i].saved_bytes for i in chosen), copies))
    return min(fitting, key=lambda pair: pair[0])[1]


# %% right: numpy_and_lists
"""Bit masks by numpy; copies are lists, in a tuple, and stages numpy's integers."""
import math

import numpy as np

import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    if any(stage.saved_bytes > budget_bytes for stage in stages):
        raise ValueError("one stage alone exceeds the budget")

    def tries():
        for mask in range(2**n):
            swapped = np.flatnonzero([mask >> i & 1 for i in range(n)])
            back = [["in", i, n - 1] for i in swapped[::-1]]
            yield (*(["out", i, i] for i in swapped), *back)

    def span(copies):
        try:
            return simulate(stages, budget_bytes, link_bytes_per_s, copies).makespan
        except peakmem.Infeasible:
            return math.inf

    return min(tries(), key=span)


# %% wrong: smallest_set
"""The first set that fits, the smallest sets first. [earns 4]"""
import peakmem
from peakmem.swapping import simulate
import itertools
def schedule(stages, budget_bytes, link_bytes_per_s):
    if max(s.saved_bytes for s in stages) > budget_bytes:
        raise ValueError("does not fit")
    n = len(stages)
    for k in range(n + 1):
        for chosen in itertools.combinations(range(n), k):
            copies = [("out", i, i) for i in chosen] + [("in", i, n - 1) for i in reversed(chosen)]
            try:
                simulate(stages, budget_bytes, link_bytes_per_s, copies)
                return copies
            except peakmem.Infeasible:
                continue
