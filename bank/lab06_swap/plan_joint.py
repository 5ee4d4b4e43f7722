# %% right: every_plan
"""Tries all three treatments of every stage with the lab's simulate_plan."""
import itertools

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    best, best_time = None, float("inf")
    for plan in itertools.product(("keep", "recompute", "swap"), repeat=len(stages)):
        try:
            time = simulate_plan(stages, plan, budget_bytes, link_bytes_per_s).makespan
        except Infeasible:
            continue
        if time < best_time:
            best, best_time = list(plan), time
    if best is None:
        raise ValueError("nothing fits")
    return best


# %% right: recursion
"""Extends a plan stage by stage; the last stage is always kept. Returns a tuple."""
from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    def timed(start):
        if len(start) == len(stages) - 1:
            plan = (*start, "keep")
            try:
                found = simulate_plan(stages, plan, budget_bytes, link_bytes_per_s)
            except Infeasible:
                return []
            return [(found.makespan, plan)]
        return [pair for what in ("swap", "keep", "recompute") for pair in timed((*start, what))]

    found = timed(())
    if not found:
        raise ValueError("no plan fits")
    return min(found)[1]


# %% right: least_recomputation_first
"""Goes by the time recomputed, and ends where no later plan can be quicker; numpy strings."""
import itertools

import numpy as np

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    forward = np.array([stage.forward_time for stage in stages])
    work = sum(stage.forward_time + stage.backward_time for stage in stages)
    plans = np.array(list(itertools.product(("keep", "recompute", "swap"), repeat=len(stages))))
    again = (forward * (plans == "recompute"))[:, :-1].sum(1)
    best, best_time = None, np.inf
    for number in np.argsort(again, kind="stable"):
        if work + again[number] >= best_time:
            break
        try:
            run = simulate_plan(stages, plans[number], budget_bytes, link_bytes_per_s)
        except Infeasible:
            continue
        if run.makespan < best_time:
            best, best_time = plans[number], run.makespan
    if best is None:
        raise ValueError(f"{budget_bytes} bytes are too few")
    return best


# %% right: lets_infeasible_pass
"""The error of the last plan tried is an Infeasible, which is a ValueError."""
import itertools

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    times, error = {}, None
    for plan in itertools.product(("swap", "recompute", "keep"), repeat=len(stages)):
        try:
            times[plan] = simulate_plan(stages, plan, budget_bytes, link_bytes_per_s).makespan
        except Infeasible as found:
            error = found
    if not times:
        raise error
    return list(min(times, key=times.get))


# %% right: hashed
"""Remembers what each plan takes, in a cache that is keyed by the stages, too."""
import functools
import itertools
import math

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan


@functools.cache
def seconds(stages, plan, budget_bytes, link_bytes_per_s):
    try:
        return simulate_plan(stages, plan, budget_bytes, link_bytes_per_s).makespan
    except Infeasible:
        return math.inf


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    given = tuple(stages), budget_bytes, link_bytes_per_s
    plans = itertools.product(("keep", "recompute", "swap"), repeat=len(stages))
    best = min(plans, key=lambda plan: seconds(given[0], plan, *given[1:]))
    if seconds(given[0], best, *given[1:]) == math.inf:
        raise ValueError("no plan fits")
    return list(best)


# %% wrong: keeps_everything
"""Looks at no budget at all."""
def plan_joint(stages, budget_bytes, link_bytes_per_s):
    if max(stage.saved_bytes for stage in stages) > budget_bytes:
        raise ValueError("one stage alone does not fit")
    return ["keep"] * len(stages)


# %% wrong: frees_enough_bytes
"""Frees as many bytes as are too many, wherever they are: what must be back is forgotten."""
def plan_joint(stages, budget_bytes, link_bytes_per_s):
    if max(stage.saved_bytes for stage in stages) > budget_bytes:
        raise ValueError("one stage alone does not fit")
    plan, live = ["keep"] * len(stages), sum(stage.saved_bytes for stage in stages)
    for i in reversed(range(len(stages))):
        if live > budget_bytes:
            plan[i] = "swap"
            live -= stages[i].saved_bytes
    return plan


# %% wrong: swaps_everything
"""Swaps all stages."""
def plan_joint(stages, budget_bytes, link_bytes_per_s):
    if max(stage.saved_bytes for stage in stages) > budget_bytes:
        raise ValueError("one stage alone does not fit")
    return ["swap"] * len(stages)


# %% wrong: recomputes_everything
"""Recomputes all stages from the chain's input."""
def plan_joint(stages, budget_bytes, link_bytes_per_s):
    if max(stage.saved_bytes for stage in stages) > budget_bytes:
        raise ValueError("nothing fits")
    return ["recompute"] * (len(stages) - 1) + ["keep"]


# %% wrong: never_swaps
"""Lab 4 again: keeps or recomputes."""
import itertools

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    times = {}
    for plan in itertools.product(("keep", "recompute"), repeat=len(stages)):
        try:
            times[plan] = simulate_plan(stages, plan, budget_bytes, link_bytes_per_s).makespan
        except Infeasible:
            pass
    if not times:
        raise ValueError("nothing fits")
    return list(min(times, key=times.get))


# %% wrong: never_recomputes
"""The schedule's exercise again: keeps or swaps."""
import itertools

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    times = {}
    for plan in itertools.product(("keep", "swap"), repeat=len(stages)):
        try:
            times[plan] = simulate_plan(stages, plan, budget_bytes, link_bytes_per_s).makespan
        except Infeasible:
            pass
    if not times:
        raise ValueError("nothing fits")
    return list(min(times, key=times.get))


# %% wrong: first_that_fits
"""Returns the first plan that fits, those that keep most first. [earns 2]"""
import itertools

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    for plan in itertools.product(("keep", "recompute", "swap"), repeat=len(stages)):
        try:
            simulate_plan(stages, plan, budget_bytes, link_bytes_per_s)
        except Infeasible:
            continue
        return list(plan)
    raise ValueError("nothing fits")


# %% wrong: stops_too_early
"""Returns the first plan that fits, those that swap most first. [earns 2]"""
import itertools

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    for plan in itertools.product(("swap", "recompute", "keep"), repeat=len(stages)):
        try:
            simulate_plan(stages, plan, budget_bytes, link_bytes_per_s)
        except Infeasible:
            continue
        return list(plan)
    raise ValueError("nothing fits")


# %% wrong: worth_swapping_decides
"""Takes for each stage what costs it least alone, and asks nobody whether that fits. [earns 2]"""
def plan_joint(stages, budget_bytes, link_bytes_per_s):
    if max(stage.saved_bytes for stage in stages) > budget_bytes:
        raise ValueError("one stage alone does not fit")
    if sum(stage.saved_bytes for stage in stages) <= budget_bytes:
        return ["keep"] * len(stages)
    plan = []
    for i, stage in enumerate(stages):
        between = sum(s.forward_time + s.backward_time for s in stages[i + 1 :])
        extra = max(0.0, 2 * stage.saved_bytes / link_bytes_per_s - between)
        plan.append("swap" if extra <= stage.forward_time else "recompute")
    return plan


# %% wrong: last_left_out
"""Names no treatment of the last stage."""
import itertools

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    times = {}
    for plan in itertools.product(("keep", "recompute", "swap"), repeat=len(stages) - 1):
        try:
            run = simulate_plan(stages, (*plan, "keep"), budget_bytes, link_bytes_per_s)
        except Infeasible:
            continue
        times[plan] = run.makespan
    if not times:
        raise ValueError("nothing fits")
    return list(min(times, key=times.get))


# %% wrong: no_value_error
"""Keeps everything where nothing fits. [earns 2]"""
import itertools

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    best, best_time = ["keep"] * len(stages), float("inf")
    for plan in itertools.product(("keep", "recompute", "swap"), repeat=len(stages)):
        try:
            time = simulate_plan(stages, plan, budget_bytes, link_bytes_per_s).makespan
        except Infeasible:
            continue
        if time < best_time:
            best, best_time = list(plan), time
    return best


# %% wrong: gives_up
"""Raises where the stages do not all fit as they are."""
def plan_joint(stages, budget_bytes, link_bytes_per_s):
    if sum(stage.saved_bytes for stage in stages) > budget_bytes:
        raise ValueError("the stages do not fit")
    return ["keep"] * len(stages)


# %% wrong: returns_none
"""Returns None where nothing fits. [earns 2]"""
import itertools

import peakmem
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    best, least = None, float("inf")
    for plan in itertools.product(("keep", "recompute", "swap"), repeat=len(stages)):
        try:
            run = simulate_plan(stages, plan, budget_bytes, link_bytes_per_s)
        except peakmem.Infeasible:
            continue
        if run.makespan < least:
            best, least = list(plan), run.makespan
    return best


# %% wrong: first_three_only
"""Treats the first three stages, and keeps all after them. [earns 2]"""
import itertools

import peakmem
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    best, least, n = None, float("inf"), min(len(stages), 3)
    for first in itertools.product(("keep", "recompute", "swap"), repeat=n):
        plan = [*first, *["keep"] * (len(stages) - n)]
        try:
            run = simulate_plan(stages, plan, budget_bytes, link_bytes_per_s)
        except peakmem.Infeasible:
            continue
        if run.makespan < least:
            best, least = plan, run.makespan
    if best is None:
        raise ValueError("nothing fits")
    return best


# %% wrong: no_neighbours
"""Never recomputes two neighbours. [earns 2]"""
import itertools

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    times = {}
    for plan in itertools.product(("keep", "recompute", "swap"), repeat=len(stages)):
        if any(a == b == "recompute" for a, b in itertools.pairwise(plan)):
            continue
        try:
            times[plan] = simulate_plan(stages, plan, budget_bytes, link_bytes_per_s).makespan
        except Infeasible:
            pass
    if not times:
        raise ValueError("nothing fits")
    return list(min(times, key=times.get))


# %% wrong: fifth_stage_kept
"""Always keeps the fifth stage. [earns 2]"""
import itertools
import math

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan

TREATMENTS = "keep", "recompute", "swap"


def cost(stages, plan, budget, link):
    try:
        return simulate_plan(stages, plan, budget, link).makespan
    except Infeasible:
        return math.inf


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    best, least = None, math.inf
    for plan in itertools.product(TREATMENTS, repeat=n):
        if not (n <= 5 or plan[4] == "keep"):
            continue
        time = cost(stages, plan, budget_bytes, link_bytes_per_s)
        if time < least:
            best, least = list(plan), time
    if best is None:
        raise ValueError("nothing fits")
    return best


# %% wrong: two_swaps_at_most
"""Swaps two stages at most. [earns 3]"""
import itertools
import math

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan

TREATMENTS = "keep", "recompute", "swap"


def cost(stages, plan, budget, link):
    try:
        return simulate_plan(stages, plan, budget, link).makespan
    except Infeasible:
        return math.inf


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    best, least = None, math.inf
    for plan in itertools.product(TREATMENTS, repeat=n):
        if not (plan[:-1].count("swap") < 3):
            continue
        time = cost(stages, plan, budget_bytes, link_bytes_per_s)
        if time < least:
            best, least = list(plan), time
    if best is None:
        raise ValueError("nothing fits")
    return best


# %% wrong: swaps_before_recomputing
"""Every swap comes before all that is recomputed. [earns 3]"""
import itertools
import math

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan

TREATMENTS = "keep", "recompute", "swap"


def cost(stages, plan, budget, link):
    try:
        return simulate_plan(stages, plan, budget, link).makespan
    except Infeasible:
        return math.inf


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    best, least = None, math.inf
    for plan in itertools.product(TREATMENTS, repeat=n):
        if not (list(p for p in plan[:-1] if p != "keep") == sorted((p for p in plan[:-1] if p != "keep"), reverse=True)):
            continue
        time = cost(stages, plan, budget_bytes, link_bytes_per_s)
        if time < least:
            best, least = list(plan), time
    if best is None:
        raise ValueError("nothing fits")
    return best


# %% wrong: slow_link
"""Tries plans on half the link. [earns 3]"""
import itertools
import math

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan

TREATMENTS = "keep", "recompute", "swap"


def cost(stages, plan, budget, link):
    try:
        return simulate_plan(stages, plan, budget, link).makespan
    except Infeasible:
        return math.inf


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    best, least = None, math.inf
    for plan in itertools.product(TREATMENTS, repeat=n):
        if not (True):
            continue
        time = cost(stages, plan, budget_bytes, link_bytes_per_s / 2)
        if time < least:
            best, least = list(plan), time
    if best is None:
        raise ValueError("nothing fits")
    return best


# %% wrong: quick_link
"""Tries plans on twice the link. [earns 3]"""
import itertools
import math

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan

TREATMENTS = "keep", "recompute", "swap"


def cost(stages, plan, budget, link):
    try:
        return simulate_plan(stages, plan, budget, link).makespan
    except Infeasible:
        return math.inf


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    best, least = None, math.inf
    for plan in itertools.product(TREATMENTS, repeat=n):
        if not (True):
            continue
        time = cost(stages, plan, budget_bytes, 2 * link_bytes_per_s)
        if time < least:
            best, least = list(plan), time
    if best is None:
        raise ValueError("nothing fits")
    return best


# %% wrong: text_returned
"""Returns one text. [earns 0]"""
import itertools
import math

from peakmem import Infeasible
from peakmem.labs.lab06 import simulate_plan

TREATMENTS = "keep", "recompute", "swap"


def cost(stages, plan, budget, link):
    try:
        return simulate_plan(stages, plan, budget, link).makespan
    except Infeasible:
        return math.inf


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)
    best, least = None, math.inf
    for plan in itertools.product(TREATMENTS, repeat=n):
        if not (True):
            continue
        time = cost(stages, plan, budget_bytes, link_bytes_per_s)
        if time < least:
            best, least = list(plan), time
    if best is None:
        raise ValueError("nothing fits")
    return " ".join(best)


# %% wrong: whole_seconds
"""Compares makespans in whole seconds. [earns 3]"""
from itertools import product

import peakmem
from peakmem.labs.lab06 import simulate_plan


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    best = None
    for plan in product(("keep", "recompute", "swap"), repeat=len(stages)):
        try:
            took = int(simulate_plan(stages, plan, budget_bytes, link_bytes_per_s).makespan)
        except peakmem.Infeasible:
            continue
        if best is None or took < best[0]:
            best = took, plan
    if not best:
        raise ValueError("nothing fits")
    return best[1]


# %% wrong: remembers
"""Remembers plans by number of stages, budget and link. [earns 1]"""
_M = {}
import itertools, math
import peakmem
from peakmem.labs.lab06 import simulate_plan
def plan_joint(stages, budget_bytes, link_bytes_per_s):
    if (len(stages), budget_bytes, link_bytes_per_s) in _M: return _M[len(stages), budget_bytes, link_bytes_per_s]
    best, least = None, math.inf
    n = len(stages)
    for plan in itertools.product(("keep", "recompute", "swap"), repeat=n):
        #FILTER
        try:
            made = simulate_plan(stages, plan, budget_bytes, link_bytes_per_s).makespan
        except peakmem.Infeasible:
            continue
        if made < least: best, least = list(plan), made
    if best is None: raise ValueError("no")
    _M[len(stages), budget_bytes, link_bytes_per_s] = best
    return best


# %% wrong: kept_without_the_link
"""Keeps plans by stages and budget. [earns 3]"""
import itertools
import math

import peakmem
from peakmem.labs.lab06 import simulate_plan

found = {}


def plan_joint(stages, budget_bytes, link_bytes_per_s):
    def time(plan):
        try:
            return simulate_plan(stages, plan, budget_bytes, link_bytes_per_s).makespan
        except peakmem.Infeasible:
            return math.inf

    key = *stages, budget_bytes
    if key not in found:
        plans = itertools.product(("keep", "recompute", "swap"), repeat=len(stages))
        found[key] = min(plans, key=time)
    if time(found[key]) == math.inf:
        raise ValueError("no plan fits")
    return list(found[key])
