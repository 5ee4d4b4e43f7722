"""Doubles until it does not fit, then halves. [earns 3]"""
import peakmem


def largest_micro_batch(run, upper):
    def fits(m):
        try:
            run(m)
        except peakmem.OutOfMemory:
            return False
        return True

    low, high = 0, 1
    while high <= upper and fits(high):
        low, high = high, 2 * high
    high = min(high, upper + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
