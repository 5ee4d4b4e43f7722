"""Tries the scales from the largest down."""

import torch


def best_scale(grads):
    for exponent in range(24, -25, -1):
        scale = 2.0**exponent
        if all((grad * scale).half().isfinite().all() for grad in grads):
            return scale
    return 2.0**-24
