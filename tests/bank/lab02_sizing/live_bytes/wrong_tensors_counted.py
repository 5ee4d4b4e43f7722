"""Counts tensors."""
def live_bytes(tensors, n_steps):
    live = [
        sum(1 for size, first, last in tensors if first <= step <= last) for step in range(n_steps)
    ]
    return live
