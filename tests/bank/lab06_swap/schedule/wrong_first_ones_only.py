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
