"""The plan of the least peak, found by halving the budget. [earns 2]"""


def best(stages, budget):
    n = len(stages)
    least = {-1: (0, [])}
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            needed = held + sum(stage.saved_bytes for stage in stages[i + 1 : j + 1])
            total = held + stages[j].output_bytes
            if needed <= budget and (j not in least or total < least[j][0]):
                least[j] = (total, [*kept, j])
    for last, (held, kept) in sorted(least.items()):
        if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget:
            return kept
    return None


def plan(stages, budget_bytes):
    low, high = -1, sum(stage.saved_bytes for stage in stages)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if best(stages, middle) is not None else (middle, high)
    if high > budget_bytes:
        raise ValueError("no plan")
    return best(stages, high)
