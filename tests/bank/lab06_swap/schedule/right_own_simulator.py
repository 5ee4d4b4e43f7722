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
