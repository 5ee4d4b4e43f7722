"""Knows a full memory by the form of the text."""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except Exception as error:
            if not str(error).endswith("do not fit"):
                raise
            too_large = middle
    return fits
