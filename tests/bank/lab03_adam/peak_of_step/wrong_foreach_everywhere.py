"""Takes every step for foreach."""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    p = sum(sizes)
    if optimizer == "for-loop":
        made = p
    elif optimizer == "foreach":
        made = p
    else:
        made = p
    step = 4 * p + made
    backward = 4 * p + activation_bytes
    return (backward, "backward") if backward >= step else (step, "step")
