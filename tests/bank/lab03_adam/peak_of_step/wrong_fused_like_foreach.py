"""Tells the for-loop from the rest, and takes fused for foreach."""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    temporaries = sum(sizes)
    if optimizer == "for-loop":
        temporaries = max(2 * own + last for own, last in zip(sizes, [0] + sizes))
    if activation_bytes > temporaries:
        return 4 * sum(sizes) + activation_bytes, "backward"
    return 4 * sum(sizes) + temporaries, "step"
