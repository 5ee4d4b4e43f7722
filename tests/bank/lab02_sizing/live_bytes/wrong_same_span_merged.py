"""A dict from steps to bytes."""

def live_bytes(tensors, n_steps):
    spans = {(first, last): size for size, first, last in tensors}
    live = [0] * n_steps
    for (first, last), size in spans.items():
        for t in range(max(first, 0), min(last, n_steps - 1) + 1):
            live[t] += size
    return live
