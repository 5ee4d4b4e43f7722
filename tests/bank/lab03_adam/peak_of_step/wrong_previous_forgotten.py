"""Forgets the tensor before. [earns 2]"""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    p = sum(sizes)
    if optimizer == "for-loop":
        made = 2 * max(sizes)
    elif optimizer == "foreach":
        made = p
    else:
        made = 0
    step = 4 * p + made
    backward = 4 * p + activation_bytes
    return (backward, "backward") if backward >= step else (step, "step")
