# %% right: events
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


# %% right: numpy_slices
"""Slices of an array, with a clipped start."""
import numpy as np


def live_bytes(tensors, n_steps):
    live = np.zeros(n_steps, np.int64)
    for size, first, last in tensors:
        live[max(first, 0) : max(last + 1, 0)] += size
    return live


# %% right: sum_per_step
"""A sum for each step."""
def live_bytes(tensors, n_steps):
    return [sum(t[0] for t in tensors if t[1] <= step <= t[2]) for step in range(n_steps)]


# %% wrong: born_only
"""Counts a tensor when it is made."""
def live_bytes(tensors, n_steps):
    live = [
        sum(size for size, first, last in tensors if first == step) for step in range(n_steps)
    ]
    return live


# %% wrong: equal_rows_merged
"""A set of rows."""

def live_bytes(tensors, n_steps):
    rows = {tuple(row) for row in tensors}
    return [sum(b for b, first, last in rows if first <= t <= last) for t in range(n_steps)]


# %% wrong: first_excluded
"""A tensor counts from the step after its birth."""
def live_bytes(tensors, n_steps):
    live = [
        sum(size for size, first, last in tensors if first < step <= last) for step in range(n_steps)
    ]
    return live


# %% wrong: last_excluded
"""As range does: the last step is left out."""
def live_bytes(tensors, n_steps):
    live = [
        sum(size for size, first, last in tensors if first <= step < last) for step in range(n_steps)
    ]
    return live


# %% wrong: negative_steps_wrap
"""Forgets that first_step may be negative."""
def live_bytes(tensors, n_steps):
    live = [0] * n_steps
    for size, first, last in tensors:
        for step in range(first, min(last, n_steps - 1) + 1):
            live[step] += size
    return live


# %% wrong: never_freed
"""Adds up and never frees."""
def live_bytes(tensors, n_steps):
    live = [
        sum(size for size, first, last in tensors if first <= step) for step in range(n_steps)
    ]
    return live


# %% wrong: not_cut_off
"""Runs off the end of the list."""
def live_bytes(tensors, n_steps):
    live = [0] * n_steps
    for size, first, last in tensors:
        for step in range(first, last + 1):
            live[step] += size
    return live


# %% wrong: peak_only
"""Returns the peak."""
def live_bytes(tensors, n_steps):
    live = [
        sum(size for size, first, last in tensors if first <= step <= last) for step in range(n_steps)
    ]
    return max(live, default=0)


# %% wrong: same_span_merged
"""A dict from steps to bytes."""

def live_bytes(tensors, n_steps):
    spans = {(first, last): size for size, first, last in tensors}
    live = [0] * n_steps
    for (first, last), size in spans.items():
        for t in range(max(first, 0), min(last, n_steps - 1) + 1):
            live[t] += size
    return live


# %% wrong: slices_wrap
"""Slices of an array, whose negative ends wrap."""
import numpy as np


def live_bytes(tensors, n_steps):
    live = np.zeros(n_steps, np.int64)
    for size, first, last in tensors:
        live[first : last + 1] += size
    return live


# %% wrong: tensors_counted
"""Counts tensors."""
def live_bytes(tensors, n_steps):
    live = [
        sum(1 for size, first, last in tensors if first <= step <= last) for step in range(n_steps)
    ]
    return live


# %% right: differences
"""Adds a tensor where it begins and takes it off where it has ended, then sums along."""
from itertools import accumulate


def live_bytes(tensors, n_steps):
    changes = [0] * (n_steps + 1)
    for size, first, last in tensors:
        begin = min(max(first, 0), n_steps)
        end = min(max(last + 1, 0), n_steps)
        if begin < end:
            changes[begin] += size
            changes[end] -= size
    return list(accumulate(changes[:n_steps]))


# %% wrong: floats
"""A float array: right values, but bytes are whole numbers."""
import numpy as np


def live_bytes(tensors, n_steps):
    live = np.zeros(n_steps)
    for size, first, last in tensors:
        live[max(first, 0) : max(last + 1, 0)] += size
    return live.tolist()


# %% wrong: in_32_bits
"""Adds up in 32 bits, which wrap around."""
import numpy as np


def live_bytes(tensors, n_steps):
    sizes = np.array([size for size, _, _ in tensors], np.int64).astype(np.int32)
    live = np.zeros(n_steps, np.int32)
    for size, (_, first, last) in zip(sizes, tensors, strict=True):
        live[max(first, 0) : max(last + 1, 0)] += size
    return live


# %% right: counter_of_tensors
"""Equal tensors are counted together, by a Counter of the tuples."""
from collections import Counter


def live_bytes(tensors: list[tuple[int, int, int]], n_steps: int) -> list[int]:
    live = [0] * n_steps
    for (size, first, last), times in Counter(tensors).items():
        for step in range(max(first, 0), min(last + 1, n_steps)):
            live[step] += times * size
    return live


# %% right: type_checks
"""Checks that each item is a tuple of three numbers."""


def live_bytes(tensors, n_steps):
    for tensor in tensors:
        if not (isinstance(tensor, tuple) and len(tensor) == 3):
            raise TypeError(f"expected (bytes, first, last), not {tensor!r}")
    return [sum(b for b, f, t in tensors if f <= s <= t) for s in range(n_steps)]


# %% wrong: sorted_merge
"""Assumes tensors sorted by their first step, and stops early."""


def live_bytes(tensors, n_steps):
    live = [0] * n_steps
    for b, f, t in tensors:
        if f >= n_steps:
            break
        for s in range(max(f, 0), min(t, n_steps - 1) + 1):
            live[s] += b
    return live


# %% wrong: generator
"""Returns a generator."""
def live_bytes(tensors, n_steps):
    return (sum(b for b, f, t in tensors if f <= s <= t) for s in range(n_steps))
