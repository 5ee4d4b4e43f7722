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
