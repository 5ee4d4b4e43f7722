"""Stays below the budget."""


def plan(stages, budget_bytes):
    n = len(stages)
    least = {-1: (0, [])}  # for each kept index: the least sum of kept outputs, and the plan
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            total = held + stages[j].output_bytes
            if needed < budget_bytes and (j not in least or total < least[j][0]):
                least[j] = (total, [*kept, j])
    for last in sorted(least):  # the sooner the last cut, the less is recomputed
        held, kept = least[last]
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) < budget_bytes:
            return kept
    raise ValueError(f"no plan fits {budget_bytes} bytes")
