"""Of the plans with the fewest cuts, the quickest. [earns 2]"""


def plan(stages, budget_bytes):
    n = len(stages)
    ends = {-1: (0, [])}
    for _ in range(n):
        for last, (held, kept) in sorted(ends.items()):
            if held + sum(stage.saved_bytes for stage in stages[last + 1 :]) <= budget_bytes:
                return kept
        more = {}
        for last, (held, kept) in ends.items():
            for j in range(last + 1, n - 1):
                needed = held + sum(stage.saved_bytes for stage in stages[last + 1 : j + 1])
                total = held + stages[j].output_bytes
                if needed <= budget_bytes and (j not in more or total < more[j][0]):
                    more[j] = (total, [*kept, j])
        ends = more
    raise ValueError("no plan")
