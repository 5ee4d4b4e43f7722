"""Tries 1, 2, 3 and so on. [earns 3]"""
import peakmem


def largest_micro_batch(run, upper):
    for m in range(1, upper + 1):
        try:
            run(m)
        except peakmem.OutOfMemory:
            return m - 1
    return upper
