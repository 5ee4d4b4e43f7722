# %% right: formula
"""By the formulas; of equally good lengths the smallest."""


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers + 1
    return max(s + r, s - 1 + k)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k))


# %% right: numpy
"""With numpy's integers all the way."""

import numpy as np


def peak_activations(n_layers, segment_length):
    n = np.int64(n_layers)
    k = np.minimum(n, segment_length)
    s = np.ceil(n / k).astype(np.int64)
    r = n - (s - 1) * k
    return np.where(s == 1, n + 1, np.maximum(s + r, s - 1 + k)).item()


def recomputed_layers(n_layers, segment_length):
    k = np.minimum(np.int64(n_layers), segment_length)
    return (n_layers - 1) // k * k


def best_segment_length(n_layers):
    lengths = np.arange(1, n_layers + 1)
    return lengths[np.argmin([peak_activations(n_layers, k) for k in lengths])]


# %% right: short_formula
"""N // k + k, which the two cases come to."""


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    return n_layers // k + k


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k))


# %% right: simulation
"""Lets the chain run and counts; of equally good lengths the largest."""


def run(n, k):
    bounds = list(range(0, n, k)) + [n]
    inputs = len(bounds) - 1
    peak = inputs + bounds[-1] - bounds[-2]
    again = 0
    for number in range(inputs - 2, -1, -1):
        length = bounds[number + 1] - bounds[number]
        peak = max(peak, number + 1 + length)
        again += length
    return peak, again


def peak_activations(n_layers, segment_length):
    return run(n_layers, segment_length)[0]


def recomputed_layers(n_layers, segment_length):
    return run(n_layers, segment_length)[1]


def best_segment_length(n_layers):
    peaks = {}
    for k in range(1, n_layers + 1):
        peaks[run(n_layers, k)[0]] = k
    return peaks[min(peaks)]


# %% right: square_root_rounded
"""The root of N, rounded, which is always among the best."""

import math


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers + 1
    return max(s + r, s - 1 + k)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers):
    return round(math.sqrt(n_layers))


# %% right: square_root_up
"""The root of N, rounded up, which is always among the best."""

import math


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers + 1
    return max(s + r, s - 1 + k)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers):
    return math.ceil(math.sqrt(n_layers))


# %% wrong: all_again
"""Recomputes every layer. [earns 2]"""


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers + 1
    return max(s + r, s - 1 + k)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return n_layers


def best_segment_length(n_layers):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k))


# %% wrong: all_but_one_segment
"""N - k layers again. [earns 2]"""


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers + 1
    return max(s + r, s - 1 + k)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return max(n_layers - k, 0)


def best_segment_length(n_layers):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k))


# %% wrong: input_forgotten
"""Leaves the chain's input out. [earns 2]"""


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers
    return max(s + r, s - 1 + k) - 1


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k))


# %% wrong: inputs_forgotten
"""Counts the outputs of the longest segment, and no inputs. [earns 1]"""


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers + 1
    return k


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k))


# %% wrong: last_forgotten
"""Looks at recomputed segments only. [earns 1]"""


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers + 1
    return s - 1 + k


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k))


# %% wrong: last_is_whole
"""Takes the last segment for a whole one. [earns 1]"""


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    return s + k


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k))


# %% wrong: least_peak_itself
"""Returns the least peak. [earns 2]"""


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers + 1
    return max(s + r, s - 1 + k)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers):
    return min(peak_activations(n_layers, k) for k in range(1, n_layers + 1))


# %% wrong: long_segment
"""Lets a segment be longer than the chain. [earns 2]"""


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return segment_length + 1
    return max(s + r, s - 1 + k)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k))


# %% wrong: recomputed_forgotten
"""The peak at the end of forward. [earns 1]"""


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    return s + r


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k))


# %% wrong: square_root
"""The root of N, rounded down. [earns 2]"""

import math


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers + 1
    return max(s + r, s - 1 + k)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return (-(-n_layers // k) - 1) * k


def best_segment_length(n_layers):
    return math.isqrt(n_layers)


# %% wrong: whole_segments
"""Recomputes every whole segment. [earns 2]"""


def peak_activations(n_layers, segment_length):
    k = min(segment_length, n_layers)
    s = -(-n_layers // k)
    r = n_layers - (s - 1) * k
    if s == 1:
        return n_layers + 1
    return max(s + r, s - 1 + k)


def recomputed_layers(n_layers, segment_length):
    k = min(segment_length, n_layers)
    return n_layers // k * k


def best_segment_length(n_layers):
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k))
