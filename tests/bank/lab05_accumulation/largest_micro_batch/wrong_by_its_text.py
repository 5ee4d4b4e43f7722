"""Knows a full memory by the word in the error."""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except Exception as error:
            if "memory" not in str(error) and "fit" not in str(error):
                raise
            too_large = middle
    return fits
