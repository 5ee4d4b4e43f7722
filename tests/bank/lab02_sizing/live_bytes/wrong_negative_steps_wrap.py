"""Forgets that first_step may be negative."""
def live_bytes(tensors, n_steps):
    live = [0] * n_steps
    for size, first, last in tensors:
        for step in range(first, min(last, n_steps - 1) + 1):
            live[step] += size
    return live
