"""Returns the exponent."""

import math


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads if g.numel()), default=0.0)
    scale = 2.0**24
    while scale > 2.0**-24 and largest * scale >= 65520:
        scale /= 2
    return math.log2(scale)
