"""Runs all layers without checkpoints."""


def run_in_segments(layers, x, segment_length):
    for layer in layers:
        x = layer(x)
    return x
