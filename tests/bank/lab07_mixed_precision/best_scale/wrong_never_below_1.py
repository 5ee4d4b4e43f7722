"""Scales are at least 1."""


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads if g.numel()), default=0.0)
    scale = 2.0**24
    while scale > 1 and largest * scale >= 65520:
        scale /= 2
    return scale
