"""Each segment as long as fits, from the front."""


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
    kept, held, filled = [], 0, 0
    for index, stage in enumerate(stages):
        if index and held + filled + stage.saved_bytes > budget_bytes:
            kept.append(index - 1)
            held += stages[index - 1].output_bytes
            filled = 0
        filled += stage.saved_bytes
    if peak(stages, kept) > budget_bytes:
        raise ValueError("no plan")
    return kept
