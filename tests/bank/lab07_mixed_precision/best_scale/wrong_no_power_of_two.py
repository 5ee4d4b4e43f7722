"""Divides the maximum by the largest value."""


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads if g.numel()), default=0.0)
    return min(2.0**24, 65504 / largest) if largest else 2.0**24
