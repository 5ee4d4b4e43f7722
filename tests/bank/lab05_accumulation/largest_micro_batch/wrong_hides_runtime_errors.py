"""Takes a RuntimeError, which torch raises for most bugs, for a full memory. [earns 1]"""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except (peakmem.OutOfMemory, RuntimeError):
            too_large = middle
    return fits
