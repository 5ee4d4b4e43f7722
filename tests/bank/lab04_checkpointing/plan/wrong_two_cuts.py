"""At most two cuts."""
import itertools


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
    last = range(len(stages) - 1)
    plans = [list(cuts) for m in range(3) for cuts in itertools.combinations(last, m)]
    fitting = [kept for kept in plans if peak(stages, kept) <= budget_bytes]
    if not fitting:
        raise ValueError("no plan")
    return min(fitting, key=lambda kept: seconds(stages, kept))
