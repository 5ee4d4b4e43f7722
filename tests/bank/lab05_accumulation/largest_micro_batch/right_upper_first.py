"""Tries upper first, then halves below it."""
import peakmem


def largest_micro_batch(run, upper):
    low, middle, high = 0, upper, upper
    while low < high:
        try:
            run(middle)
        except peakmem.OutOfMemory:
            high = middle - 1
        else:
            low = middle
        middle = (low + high + 1) // 2
    return low
