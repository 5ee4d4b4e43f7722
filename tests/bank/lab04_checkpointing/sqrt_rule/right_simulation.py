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
