"""Recursion over the interval, with a helper."""
from peakmem import OutOfMemory


def fits(run, m):
    try:
        run(m)
    except OutOfMemory:
        return False
    return True


def largest_micro_batch(run, upper):
    def search(low, high):
        if low == high:
            return low
        middle = (low + high + 1) // 2
        return search(middle, high) if fits(run, middle) else search(low, middle - 1)

    return search(0, upper)
