"""Cuts all tensors together into blocks."""
import math


def of_tensor(shape, optimizer):
    n = math.prod(shape)
    if optimizer == "momentum":
        return 4 * n
    if optimizer == "adam":
        return 8 * n
    if optimizer == "adafactor":
        if len(shape) >= 2:
            return 4 * (n // shape[-1] + n // shape[-2])
        return 4 * n
    if optimizer == "adam8bit":
        return 2 * (n + 4 * -(-n // 256))
    return 0


def state_bytes(shapes, optimizer):
    return of_tensor([sum(map(math.prod, shapes))], optimizer) if optimizer == "adam8bit" else sum(of_tensor(s, optimizer) for s in shapes)
