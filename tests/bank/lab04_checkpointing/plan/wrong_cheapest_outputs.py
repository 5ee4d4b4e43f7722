"""Keeps the m cheapest outputs, for the best m."""


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
    order = sorted(range(len(stages) - 1), key=lambda index: stages[index].output_bytes)
    plans = [sorted(order[:m]) for m in range(len(stages))]
    fitting = [kept for kept in plans if peak(stages, kept) <= budget_bytes]
    if not fitting:
        raise ValueError("no plan")
    return min(fitting, key=lambda kept: seconds(stages, kept))
