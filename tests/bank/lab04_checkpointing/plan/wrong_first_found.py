"""The right recursion, but the first way to an index stays."""


def plan(stages, budget_bytes):
    n = len(stages)
    least = {-1: (0, [])}
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            if needed <= budget_bytes and j not in least:
                least[j] = (held + stages[j].output_bytes, [*kept, j])
    for last, (held, kept) in sorted(least.items()):
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget_bytes:
            return kept
    raise ValueError(f"no plan fits {budget_bytes} bytes")
