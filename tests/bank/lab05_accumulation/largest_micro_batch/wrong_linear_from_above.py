"""Tries upper, upper - 1 and so on. [earns 3]"""
import peakmem


def largest_micro_batch(run, upper):
    for m in range(upper, 0, -1):
        try:
            run(m)
        except peakmem.OutOfMemory:
            continue
        return m
    return 0
