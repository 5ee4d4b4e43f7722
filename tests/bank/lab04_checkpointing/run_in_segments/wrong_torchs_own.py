"""Uses torch.utils.checkpoint."""

import torch.utils.checkpoint


def run_in_segments(layers, x, segment_length):
    layers = list(layers)

    def run(x, first):
        for layer in layers[first : first + segment_length]:
            x = layer(x)
        return x

    for first in range(0, len(layers) - segment_length, segment_length):
        x = torch.utils.checkpoint.checkpoint(run, x, first, use_reentrant=False)
    return run(x, (len(layers) - 1) // segment_length * segment_length)
