"""Rounds the number of blocks up by a formula that is one short, which shows at 257 values."""
import math


def state_bytes(shapes, optimizer):
    total = 0
    for shape in shapes:
        n = math.prod(shape)
        if optimizer == "momentum":
            total += 4 * n
        if optimizer == "adam":
            total += 8 * n
        if optimizer == "adafactor":
            if len(shape) < 2:
                total += 4 * n
            else:
                total += 4 * (n // shape[-1] + n // shape[-2])
        if optimizer == "adam8bit":
            blocks = max(1, (n + 254) // 256)
            total += 2 * (n + 4 * blocks)
    return total
