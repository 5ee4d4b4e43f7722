"""A tensor counts from the step after its birth."""
def live_bytes(tensors, n_steps):
    live = [
        sum(size for size, first, last in tensors if first < step <= last) for step in range(n_steps)
    ]
    return live
