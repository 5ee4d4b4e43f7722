"""Forward over all pairs of kept bytes and time that no other beats; numpy's indices."""

import numpy as np


def plan(stages, budget_bytes):
    n = len(stages)
    saved = np.cumsum([0] + [s.saved_bytes for s in stages])
    ends = [[(0, ())]] + [[] for _ in range(n)]  # ends[i]: plans whose last segment ends before i
    for end in range(1, n + 1):
        for start in range(end):
            for held, kept in ends[start]:
                if held + saved[end] - saved[start] <= budget_bytes:
                    ends[end].append((held + stages[end - 1].output_bytes, (*kept, end - 1)))
        ends[end] = sorted(ends[end])[:1]
    for start in range(n + 1):
        for held, kept in ends[start]:
            if held + saved[n] - saved[start] <= budget_bytes:
                return np.array(kept, dtype=int)
    raise ValueError("no plan")
