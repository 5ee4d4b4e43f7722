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
