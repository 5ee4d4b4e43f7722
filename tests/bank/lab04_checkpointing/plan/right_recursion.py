"""Recursion with a cache from the last segment to the front."""

import functools

from peakmem.errors import Infeasible


def plan(stages, budget_bytes):
    saved = [0]
    for stage in stages:
        saved.append(saved[-1] + stage.saved_bytes)

    @functools.lru_cache(None)
    def best(end):
        """Cheapest kept outputs with one at `end`, as (bytes, indices)."""
        if end < 0:
            return 0, ()
        ways = []
        for before in range(-1, end):
            found = best(before)
            if found and found[0] + saved[end + 1] - saved[before + 1] <= budget_bytes:
                ways.append((found[0] + stages[end].output_bytes, (*found[1], end)))
        return min(ways) if ways else None

    for end in range(-1, len(stages)):
        found = best(end)
        if found and found[0] + saved[-1] - saved[end + 1] <= budget_bytes:
            return found[1]
    raise Infeasible("nothing fits", least_budget_bytes=None)
