"""A set of rows."""

def live_bytes(tensors, n_steps):
    rows = {tuple(row) for row in tensors}
    return [sum(b for b, first, last in rows if first <= t <= last) for t in range(n_steps)]
