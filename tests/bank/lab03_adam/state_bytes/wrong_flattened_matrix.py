"""Takes any tensor for one matrix."""
import math


def of_tensor(shape, optimizer):
    n = math.prod(shape)
    if optimizer == "momentum":
        return 4 * n
    if optimizer == "adam":
        return 8 * n
    if optimizer == "adafactor":
        if len(shape) >= 2:
            return 4 * (shape[0] + n // shape[0])
        return 4 * n
    if optimizer == "adam8bit":
        return 2 * (n + 4 * -(-n // 256))
    return 0


def state_bytes(shapes, optimizer):
    return sum(of_tensor(shape, optimizer) for shape in shapes)
