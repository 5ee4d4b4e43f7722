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
