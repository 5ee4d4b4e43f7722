"""numpy's product, which is a float for a shape of no dimensions."""

import numpy as np


def state_bytes(shapes, optimizer):
    def one(shape):
        n = np.prod(shape)
        if optimizer == "sgd":
            return 0
        if optimizer == "momentum":
            return 4 * n
        if optimizer == "adam":
            return 8 * n
        if optimizer == "adafactor":
            return 4 * n if len(shape) < 2 else 4 * (n // shape[-1] + n // shape[-2])
        return 2 * (n + 4 * np.ceil(n / 256))

    return sum(one(shape) for shape in shapes)
