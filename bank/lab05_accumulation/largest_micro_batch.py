# %% right: bisect
"""The standard library's bisect over the range, upside down."""
import bisect

import peakmem


def largest_micro_batch(run, upper):
    def is_too_large(m):
        try:
            run(m)
        except peakmem.OutOfMemory:
            return True
        return False

    return bisect.bisect_left(range(1, upper + 1), True, key=is_too_large)


# %% right: bits
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


# %% right: loop
"""Halves between what fits and what does not."""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except peakmem.OutOfMemory:
            too_large = middle
    return fits


# %% right: recursion
"""Recursion over the interval, with a helper."""
from peakmem import OutOfMemory


def fits(run, m):
    try:
        run(m)
    except OutOfMemory:
        return False
    return True


def largest_micro_batch(run, upper):
    def search(low, high):
        if low == high:
            return low
        middle = (low + high + 1) // 2
        return search(middle, high) if fits(run, middle) else search(low, middle - 1)

    return search(0, upper)


# %% right: upper_first
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


# %% wrong: above_upper
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


# %% wrong: assumes_one_fits
"""Begins with 1 as a size that fits."""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 1, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except peakmem.OutOfMemory:
            too_large = middle
    return fits


# %% wrong: by_its_text
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


# %% wrong: by_the_start_of_its_text
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


# %% wrong: catches_everything
"""A bare except takes every error for a full memory. [earns 1]"""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except Exception:
            too_large = middle
    return fits


# %% wrong: doubles_first
"""Doubles until it does not fit, then halves. [earns 3]"""
import peakmem


def largest_micro_batch(run, upper):
    def fits(m):
        try:
            run(m)
        except peakmem.OutOfMemory:
            return False
        return True

    low, high = 0, 1
    while high <= upper and fits(high):
        low, high = high, 2 * high
    high = min(high, upper + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


# %% wrong: float
"""Returns the answer as a float."""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except peakmem.OutOfMemory:
            too_large = middle
    return float(fits)


# %% wrong: half_samples
"""Halves with / and runs 2.5 samples."""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) / 2
        try:
            run(middle)
            fits = middle
        except peakmem.OutOfMemory:
            too_large = middle
    return fits


# %% wrong: hides_runtime_errors
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


# %% wrong: hides_the_bug
"""Turns another error into 0. [earns 1]"""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except peakmem.OutOfMemory:
            too_large = middle
        except ValueError:
            return 0
    return fits


# %% wrong: lets_it_pass
"""Catches the error of torch, which is another one."""
import torch


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except torch.cuda.OutOfMemoryError:
            too_large = middle
    return fits


# %% wrong: linear_from_above
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


# %% wrong: linear_search
"""Tries 1, 2, 3 and so on. [earns 3]"""
import peakmem


def largest_micro_batch(run, upper):
    for m in range(1, upper + 1):
        try:
            run(m)
        except peakmem.OutOfMemory:
            return m - 1
    return upper


# %% wrong: one_too_few
"""Takes the upper end for one that does not fit."""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except peakmem.OutOfMemory:
            too_large = middle
    return fits


# %% wrong: one_too_many
"""Returns the first size that does not fit."""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except peakmem.OutOfMemory:
            too_large = middle
    return min(too_large, upper)


# %% wrong: outside_the_range
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


# %% wrong: powers_of_two_only
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


# %% wrong: prints
"""Prints the answer and returns None."""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except peakmem.OutOfMemory:
            too_large = middle
    print(fits)


# %% wrong: thirds
"""Cuts the interval in thirds, with up to two runs each. [earns 3]"""
import peakmem


def largest_micro_batch(run, upper):
    def fits(m):
        try:
            run(m)
        except peakmem.OutOfMemory:
            return False
        return True

    low, high = 0, upper + 1
    while high - low > 1:
        third = max(1, (high - low) // 3)
        first, second = low + third, min(high - 1, low + 2 * third)
        if fits(second):
            low = second
        elif fits(first):
            low, high = first, second
        else:
            high = first
    return low


# %% wrong: runs_a_size_twice
"""Runs each size once to see whether it fits and once more to be sure. [earns 3]"""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            run(middle)
            fits = middle
        except peakmem.OutOfMemory:
            too_large = middle
    return fits


# %% wrong: catches_a_base
"""Catches MemoryError, of which OutOfMemory is one kind. [earns 1]"""
def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except MemoryError:
            too_large = middle
    return fits


# %% wrong: catches_the_librarys_base
"""Catches all exceptions of peakmem. [earns 1]"""
from peakmem.errors import PeakmemError


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except PeakmemError:
            too_large = middle
    return fits


# %% right: shrinking_range
"""A while loop over a range object that shrinks."""
import peakmem


def largest_micro_batch(run, upper):
    sizes = range(1, upper + 1)
    while sizes:
        k = len(sizes) // 2
        try:
            run(sizes[k])
        except peakmem.OutOfMemory:
            sizes = sizes[:k]
        else:
            sizes = sizes[k + 1 :]
    return sizes.start - 1


# %% wrong: broad_in_the_loop
"""The first run catches OutOfMemory alone, the loop every error. [earns 1]"""
import peakmem


def largest_micro_batch(run, upper):
    try:
        run(1)
    except peakmem.OutOfMemory:
        return 0
    low, high = 1, upper + 1
    while high - low > 1:
        mid = (low + high) // 2
        try:
            run(mid)
            low = mid
        except Exception:
            high = mid
    return low


# %% wrong: ends_then_broad
"""Both ends catch OutOfMemory alone, the loop every error. [earns 1]"""
import peakmem


def largest_micro_batch(run, upper):
    try:
        run(upper)
        return upper
    except peakmem.OutOfMemory:
        pass
    if upper == 1:
        return 0
    try:
        run(1)
    except peakmem.OutOfMemory:
        return 0
    low, high = 1, upper
    while high - low > 1:
        mid = (low + high) // 2
        try:
            run(mid)
            low = mid
        except Exception:
            high = mid
    return low


# %% wrong: catches_runtime_error
"""Takes a full memory for a RuntimeError, as torch's own was once."""


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except RuntimeError:
            too_large = middle
    return fits


# %% wrong: return_in_finally
"""A return in finally hides what the last run raises. [earns 1]"""
import peakmem


def largest_micro_batch(run, upper):
    low, high = 0, upper
    while True:
        m = (low + high + 1) // 2
        fits = False
        try:
            run(m)
            fits = True
        except peakmem.OutOfMemory:
            pass
        finally:
            low, high = (m, high) if fits else (low, m - 1)
            if low == high:
                return low


# %% wrong: reads_the_result
"""Takes a run that returns something for one that doesn't fit."""
import peakmem


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            good = run(middle) is None
        except peakmem.OutOfMemory:
            good = False
        if good:
            fits = middle
        else:
            too_large = middle
    return fits

# %% wrong: never_ends
"""Middle rounded down: never ends with two left. [earns 0]"""


import peakmem
def largest_micro_batch(run, upper):
    lo, hi = 0, upper
    while lo < hi:
        m = (lo + hi) // 2
        try:
            run(m)
            lo = m
        except peakmem.OutOfMemory:
            hi = m - 1
    return lo

# %% wrong: bare_except_endless
"""A search that never ends, within a bare except."""


def largest_micro_batch(run, upper):
    lo, hi = 0, upper
    while lo < hi:
        m = (lo + hi) // 2
        try:
            run(m)
            lo = m
        except:
            hi = m - 1
    return lo
