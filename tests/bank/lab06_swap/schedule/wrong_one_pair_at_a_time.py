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
