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
