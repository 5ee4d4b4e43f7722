"""Runs off the end of the list."""
def live_bytes(tensors, n_steps):
    live = [0] * n_steps
    for size, first, last in tensors:
        for step in range(first, last + 1):
            live[step] += size
    return live
