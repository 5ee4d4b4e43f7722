"""Adds the cut that lowers the peak most, until it fits."""


def peak(stages, kept):
    starts = [0] + [i + 1 for i in kept]
    ends = [i + 1 for i in kept] + [len(stages)]
    return max(
        sum(stages[i].output_bytes for i in kept if i < a) + sum(s.saved_bytes for s in stages[a:b])
        for a, b in zip(starts, ends)
    )


def plan(stages, budget_bytes):
    kept = []
    while peak(stages, kept) > budget_bytes:
        plans = [sorted({*kept, index}) for index in range(len(stages) - 1)]
        better = min(plans, key=lambda kept: peak(stages, kept), default=kept)
        if peak(stages, better) >= peak(stages, kept):
            raise ValueError("no plan")
        kept = better
    return kept
