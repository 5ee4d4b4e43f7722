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
