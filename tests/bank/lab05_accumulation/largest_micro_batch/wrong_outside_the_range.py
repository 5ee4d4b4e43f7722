"""Begins with a run of no sample."""
import peakmem


def largest_micro_batch(run, upper):
    run(0)
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except peakmem.OutOfMemory:
            too_large = middle
    return fits
