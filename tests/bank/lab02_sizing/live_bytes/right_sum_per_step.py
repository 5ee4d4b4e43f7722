"""A sum for each step."""
def live_bytes(tensors, n_steps):
    return [sum(t[0] for t in tensors if t[1] <= step <= t[2]) for step in range(n_steps)]
