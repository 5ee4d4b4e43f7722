# %% right: formula
"""By the formulas; of equally good lengths the smallest."""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved + 1
    return max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))


# %% right: numpy
"""With numpy's integers all the way."""

import numpy as np


def peak_activations(n_layers, segment_length, saved=1):
    n = np.int64(n_layers)
    k = np.minimum(n, segment_length)
    s = np.ceil(n / k).astype(np.int64)
    r = n - (s - 1) * k
    return np.where(s == 1, n * saved + 1, np.maximum(s + r * saved, s - 1 + k * saved)).item()


def recomputed_layers(n_layers, segment_length):
    k = np.minimum(np.int64(n_layers), segment_length)
    return (n_layers - 1) // k * k


def best_segment_length(n_layers, saved=1):
    lengths = np.arange(1, n_layers + 1)
    return lengths[np.argmin([peak_activations(n_layers, k, saved) for k in lengths])]


# %% right: without_a_special_case
"""One formula: with one segment, what is recomputed is never the most."""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    return s + r * saved if s == 1 or r == k else s - 1 + k * saved


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))


# %% right: simulation
"""Lets the chain run and counts; of equally good lengths the largest."""


def run(n, k, saved):
    bounds = list(range(0, n, k)) + [n]
    inputs = len(bounds) - 1
    peak = inputs + (bounds[-1] - bounds[-2]) * saved
    again = 0
    for number in range(inputs - 2, -1, -1):
        length = bounds[number + 1] - bounds[number]
        peak = max(peak, number + 1 + length * saved)
        again += length
    return peak, again


def peak_activations(n_layers, segment_length, saved=1):
    return run(n_layers, segment_length, saved)[0]


def recomputed_layers(n_layers, segment_length):
    return run(n_layers, segment_length, 1)[1]


def best_segment_length(n_layers, saved=1):
    peaks = {}
    for k in range(1, n_layers + 1):
        peaks[run(n_layers, k, saved)[0]] = k
    return peaks[min(peaks)]


# %% right: short_list
"""Only lengths up to twice the root need to be tried: longer ones save too much."""

import math


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved + 1
    return max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    lengths = range(1, min(n_layers, 2 * math.isqrt(n_layers) + 2) + 1)
    return min(lengths, key=lambda k: peak_activations(n_layers, k, saved))


# %% wrong: all_again
"""Recomputes every layer. [earns 2]"""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved + 1
    return max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    return n_layers


def best_segment_length(n_layers, saved=1):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))


# %% wrong: all_but_one_segment
"""n - k layers again. [earns 2]"""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved + 1
    return max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    return max(n_layers - segment_length, 0)


def best_segment_length(n_layers, saved=1):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))


# %% wrong: input_forgotten
"""Leaves the chain's input out. [earns 2]"""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved
    return max(s + r * saved, s - 1 + k * saved) - 1


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))


# %% wrong: inputs_forgotten
"""Counts the longest segment, and no inputs. [earns 1]"""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved + 1
    return k * saved


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))


# %% wrong: inputs_saved_too
"""Segments' inputs count as much as layers do. [earns 1]"""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved + 1
    return max(s + r, s - 1 + k) * saved


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))


# %% wrong: last_forgotten
"""Looks at recomputed segments only. [earns 1]"""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved + 1
    return s - 1 + k * saved


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))


# %% wrong: last_is_whole
"""Takes the last segment for a whole one. [earns 1]"""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    return s + k * saved


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))


# %% wrong: least_peak_itself
"""Returns the least peak. [earns 2]"""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved + 1
    return max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return min(peak_activations(n_layers, k, saved) for k in range(1, n_layers + 1))


# %% wrong: long_segment
"""Lets a segment be longer than the chain. [earns 2]"""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return segment_length * saved + 1
    return max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))


# %% wrong: recomputed_forgotten
"""The peak at the end of forward. [earns 1]"""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    return s + r * saved


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))


# %% wrong: root_without_saved
"""The root of n, rounded, whatever a layer saves. [earns 2]"""

import math


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved + 1
    return max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return round(math.sqrt(n_layers))


# %% wrong: saved_forgotten
"""Takes each layer for one unit. [earns 1]"""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers + 1
    return max(s + r, s - 1 + k)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))


# %% wrong: square_root
"""The root of n, rounded down. [earns 2]"""

import math


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved + 1
    return max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return math.isqrt(n_layers)


# %% wrong: root_of_the_quotient
"""The root of n / saved, rounded: the rule of thumb. [earns 2]"""

import math


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved + 1
    return max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return max(1, round(math.sqrt(n_layers / saved)))


# %% wrong: whole_segments
"""Recomputes every whole segment. [earns 2]"""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved + 1
    return max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return n_layers // k * k


def best_segment_length(n_layers, saved=1):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))


# %% wrong: from_two
"""Never tries segments of one layer. [earns 2]"""
import math


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = math.ceil(n_layers / k)
    r = n_layers - (s - 1) * k
    return n_layers * saved + 1 if s == 1 else max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (math.ceil(n_layers / k) - 1) * k


def best_segment_length(n_layers, saved=1):
    lengths = range(2, n_layers + 1)
    return min(lengths, key=lambda k: peak_activations(n_layers, k, saved), default=1)


# %% right: floats
"""Floats that are whole numbers."""

import numpy as np


def peak_activations(n_layers, segment_length, saved=1):
    k = np.minimum(segment_length, n_layers)
    s = np.ceil(n_layers / k)
    r = n_layers - (s - 1) * k
    several = np.maximum(s + r * saved, s - 1 + k * saved)
    return float(np.where(s == 1, n_layers * saved + 1, several))


def recomputed_layers(n_layers, segment_length):
    k = np.minimum(segment_length, n_layers)
    return (np.ceil(n_layers / k) - 1.0) * k


def best_segment_length(n_layers, saved=1):
    lengths = np.linspace(1, n_layers, n_layers)
    peaks = [peak_activations(n_layers, length, saved) for length in lengths]
    return float(lengths[np.argmin(peaks)])


# %% wrong: stops_at_a_tie
"""Lengthens segments only while that lowers the peak. [earns 2]"""

import math


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = math.ceil(n_layers / k)
    r = n_layers - (s - 1) * k
    return n_layers * saved + 1 if s == 1 else max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    k = 1
    while k < n_layers and peak_activations(n_layers, k + 1, saved) < peak_activations(
        n_layers, k, saved
    ):
        k += 1
    return k


# %% wrong: root_rounded_up
"""The root of n / saved, rounded up. [earns 2]"""

import math


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = math.ceil(n_layers / k)
    r = n_layers - (s - 1) * k
    return n_layers * saved + 1 if s == 1 else max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    return math.ceil(math.sqrt(n_layers / saved))


# %% wrong: thirds
"""A search that leaves out a third of the lengths each time. [earns 2]"""


def peak_activations(n_layers, segment_length, saved=1):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers * saved + 1
    return max(s + r * saved, s - 1 + k * saved)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers, saved=1):
    def peak(k):
        return peak_activations(n_layers, k, saved)

    low, high = 1, n_layers
    while high - low > 2:
        third = (high - low) // 3
        if peak(low + third) <= peak(high - third):
            high -= third
        else:
            low += third
    return min(range(low, high + 1), key=peak)
