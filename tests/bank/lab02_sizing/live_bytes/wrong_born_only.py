"""Counts a tensor when it is made."""
def live_bytes(tensors, n_steps):
    live = [
        sum(size for size, first, last in tensors if first == step) for step in range(n_steps)
    ]
    return live
