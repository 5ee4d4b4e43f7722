"""Counts the gradient, or a master copy, as Adam's state."""
import math


def of_tensor(shape, optimizer):
    n = math.prod(shape)
    if optimizer == "momentum":
        return 4 * n
    if optimizer == "adam":
        return 12 * n
    if optimizer == "adafactor":
        if len(shape) >= 2:
            return 4 * (n // shape[-1] + n // shape[-2])
        return 4 * n
    if optimizer == "adam8bit":
        return 2 * (n + 4 * -(-n // 256))
    return 0


def state_bytes(shapes, optimizer):
    return sum(of_tensor(shape, optimizer) for shape in shapes)
