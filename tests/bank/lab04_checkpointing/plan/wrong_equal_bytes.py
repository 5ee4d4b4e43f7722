"""Segments that save about the same, for the best number of them."""


def peak(stages, kept):
    starts = [0] + [i + 1 for i in kept]
    ends = [i + 1 for i in kept] + [len(stages)]
    return max(
        sum(stages[i].output_bytes for i in kept if i < a) + sum(s.saved_bytes for s in stages[a:b])
        for a, b in zip(starts, ends)
    )


def seconds(stages, kept):
    again = stages[: kept[-1] + 1] if kept else []
    return sum(s.forward_time for s in stages) + sum(s.forward_time for s in again)


def plan(stages, budget_bytes):
    plans = []
    for m in range(1, len(stages) + 1):
        kept, filled, total = [], 0, sum(stage.saved_bytes for stage in stages)
        for index, stage in enumerate(stages[:-1]):
            filled += stage.saved_bytes
            if filled >= total / m:
                kept.append(index)
                filled = 0
        plans.append(kept)
    fitting = [kept for kept in plans if peak(stages, kept) <= budget_bytes]
    if not fitting:
        raise ValueError("no plan")
    return min(fitting, key=lambda kept: seconds(stages, kept))
