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
