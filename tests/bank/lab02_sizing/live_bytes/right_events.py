"""Adds at births, subtracts after deaths, and accumulates."""
from itertools import accumulate


def live_bytes(tensors, n_steps):
    change = [0] * (n_steps + 1)
    for size, first, last in tensors:
        if last < 0 or first >= n_steps:
            continue
        change[max(first, 0)] += size
        change[min(last + 1, n_steps)] -= size
    return list(accumulate(change[:n_steps]))
