"""Doubles, and returns the last size that fitted."""
import peakmem


def largest_micro_batch(run, upper):
    m = 1
    while m <= upper:
        try:
            run(m)
        except peakmem.OutOfMemory:
            break
        m *= 2
    return m // 2
