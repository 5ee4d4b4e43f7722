"""The largest value and a logarithm."""

import math


def best_scale(grads):
    largest = max((g.abs().max().item() for g in grads if g.numel()), default=0.0)
    if largest == 0:
        return 2.0**24
    exponent = min(24, max(-24, math.floor(math.log2(65520 / largest))))
    while exponent > -24 and largest * 2.0**exponent >= 65520:
        exponent -= 1
    return 2.0**exponent
