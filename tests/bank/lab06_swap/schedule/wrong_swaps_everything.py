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
