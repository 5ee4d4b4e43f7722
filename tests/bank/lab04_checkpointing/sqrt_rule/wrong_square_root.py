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
