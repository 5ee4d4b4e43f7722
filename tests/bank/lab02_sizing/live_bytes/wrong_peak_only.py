"""Returns the peak."""
def live_bytes(tensors, n_steps):
    live = [
        sum(size for size, first, last in tensors if first <= step <= last) for step in range(n_steps)
    ]
    return max(live, default=0)
