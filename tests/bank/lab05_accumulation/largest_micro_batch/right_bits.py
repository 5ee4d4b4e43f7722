"""Builds the answer bit by bit from the top, in numpy integers."""
import numpy as np

import peakmem


def largest_micro_batch(run, upper):
    answer = np.int64(0)
    for bit in range(int(upper).bit_length() - 1, -1, -1):
        trial = answer + (1 << bit)
        if trial > upper:
            continue
        try:
            run(trial)
        except peakmem.OutOfMemory:
            continue
        answer = trial
    return answer
