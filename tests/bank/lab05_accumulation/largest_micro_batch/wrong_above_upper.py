"""Runs one sample more than there are."""
import peakmem


def largest_micro_batch(run, upper):
    try:
        run(upper + 1)
        return upper
    except peakmem.OutOfMemory:
        fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except peakmem.OutOfMemory:
            too_large = middle
    return fits
