# %% right: simulation
"""Plays the for-loop tensor by tensor, with numpy's integers."""
import numpy as np


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * np.prod(shape, dtype=np.int64) for shape in shapes]
    always = 4 * sum(sizes)
    top, denom = 0, 0
    if optimizer == "for-loop":
        for size in sizes:
            top = max(top, denom + size + size)
            denom = size
    elif optimizer == "foreach":
        top = sum(sizes)
    phase = "step" if top > activation_bytes else "backward"
    return always + max(top, activation_bytes), phase


# %% right: sorted
"""The larger of two labelled peaks, as a list."""
from math import prod


def peak_of_step(shapes, activation_bytes, optimizer):
    n = [prod(s) for s in shapes]
    pairs = list(zip([0] + n[:-1], n))
    extra = {"for-loop": max(a + 2 * b for a, b in pairs), "foreach": sum(n), "fused": 0}[optimizer]
    peaks = {"backward": 16 * sum(n) + activation_bytes, "step": 16 * sum(n) + 4 * extra}
    phase = max(peaks, key=peaks.get)
    return [peaks[phase], phase]


# %% right: two_sums
"""Two sums, and the larger one."""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    p = sum(sizes)
    if optimizer == "for-loop":
        made = max(2 * own + last for own, last in zip(sizes, [0] + sizes))
    elif optimizer == "foreach":
        made = p
    else:
        made = 0
    step = 4 * p + made
    backward = 4 * p + activation_bytes
    return (backward, "backward") if backward >= step else (step, "step")


# %% wrong: activations_stay
"""Holds activations during the step."""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    p = sum(sizes)
    if optimizer == "for-loop":
        made = max(2 * own + last for own, last in zip(sizes, [0] + sizes))
    elif optimizer == "foreach":
        made = p
    else:
        made = 0
    step = 4 * p + made + activation_bytes
    backward = 4 * p + activation_bytes
    return (backward, "backward") if backward >= step else (step, "step")


# %% wrong: foreach_everywhere
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


# %% wrong: fused_like_foreach
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


# %% wrong: gradients_forgotten
"""Forgets the gradients. [earns 1]"""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    p = sum(sizes)
    if optimizer == "for-loop":
        made = max(2 * own + last for own, last in zip(sizes, [0] + sizes))
    elif optimizer == "foreach":
        made = p
    else:
        made = 0
    step = 3 * p + made
    backward = 3 * p + activation_bytes
    return (backward, "backward") if backward >= step else (step, "step")


# %% wrong: moments_forgotten
"""Forgets the moments. [earns 1]"""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    p = sum(sizes)
    if optimizer == "for-loop":
        made = max(2 * own + last for own, last in zip(sizes, [0] + sizes))
    elif optimizer == "foreach":
        made = p
    else:
        made = 0
    step = 2 * p + made
    backward = 2 * p + activation_bytes
    return (backward, "backward") if backward >= step else (step, "step")


# %% wrong: no_gradients_in_backward
"""Backward without gradients."""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    p = sum(sizes)
    if optimizer == "for-loop":
        made = max(2 * own + last for own, last in zip(sizes, [0] + sizes))
    elif optimizer == "foreach":
        made = p
    else:
        made = 0
    step = 4 * p + made
    backward = 3 * p + activation_bytes
    return (backward, "backward") if backward >= step else (step, "step")


# %% wrong: no_temporaries
"""Makes no temporary values."""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    p = sum(sizes)
    if optimizer == "for-loop":
        made = 0
    elif optimizer == "foreach":
        made = 0
    else:
        made = 0
    step = 4 * p + made
    backward = 4 * p + activation_bytes
    return (backward, "backward") if backward >= step else (step, "step")


# %% wrong: one_temporary
"""Makes one temporary value. [earns 1]"""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    p = sum(sizes)
    if optimizer == "for-loop":
        made = max(sizes)
    elif optimizer == "foreach":
        made = p
    else:
        made = 0
    step = 4 * p + made
    backward = 4 * p + activation_bytes
    return (backward, "backward") if backward >= step else (step, "step")


# %% wrong: previous_forgotten
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


# %% wrong: three_of_the_largest
"""Takes all three for as large as the largest. [earns 1]"""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    p = sum(sizes)
    if optimizer == "for-loop":
        made = 3 * max(sizes)
    elif optimizer == "foreach":
        made = p
    else:
        made = 0
    step = 4 * p + made
    backward = 4 * p + activation_bytes
    return (backward, "backward") if backward >= step else (step, "step")


# %% wrong: last_before_first
"""sizes[i - 1], which is the last tensor's for the first one. [earns 1]"""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    total = sum(sizes)
    extra = {"foreach": total, "fused": 0}.get(optimizer)
    if extra is None:
        extra = max(2 * size + sizes[i - 1] for i, size in enumerate(sizes))
    if activation_bytes > extra:
        return 4 * total + activation_bytes, "backward"
    return 4 * total + extra, "step"


# %% right: events
"""A list of allocations and frees, whose running sum peaks."""
from itertools import accumulate
from math import prod


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * prod(s) for s in shapes]
    log = [3 * sum(sizes), activation_bytes, sum(sizes)]
    then = len(log)
    log.append(-activation_bytes)
    held = 0
    for size in sizes if optimizer == "for-loop" else [sum(sizes)] if optimizer == "foreach" else []:
        if optimizer == "for-loop":
            log += [size, size, -size - held]
            held = size
        else:
            log += [size, -size]
    levels = list(accumulate(log))
    where = levels.index(max(levels))
    return max(levels), "backward" if where < then else "step"


# %% wrong: at_the_largest
"""The worst tensor is taken for the largest one. [earns 2]"""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    total = sum(sizes)
    extra = {"foreach": total, "fused": 0}.get(optimizer)
    if extra is None:
        i = sizes.index(max(sizes))
        extra = 2 * sizes[i] + (sizes[i - 1] if i else 0)
    if activation_bytes > extra:
        return 4 * total + activation_bytes, "backward"
    return 4 * total + extra, "step"


# %% wrong: with_the_next
"""The tensor after instead of the one before. [earns 2]"""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    total = sum(sizes)
    extra = {"foreach": total, "fused": 0}.get(optimizer)
    if extra is None:
        extra = max(2 * own + after for own, after in zip(sizes, [*sizes[1:], 0]))
    if activation_bytes > extra:
        return 4 * total + activation_bytes, "backward"
    return 4 * total + extra, "step"


# %% wrong: first_left_out
"""Pairs only, so the first tensor by itself is never the worst. [earns 1]"""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    total = sum(sizes)
    extra = {"foreach": total, "fused": 0}.get(optimizer)
    if extra is None:
        extra = max(2 * own + before for before, own in zip(sizes, sizes[1:]))
    if activation_bytes > extra:
        return 4 * total + activation_bytes, "backward"
    return 4 * total + extra, "step"


# %% wrong: all_before
"""The quotients of all tensors before are still live."""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) for shape in shapes]
    total = sum(sizes)
    before = {
        "for-loop": max(2 * size + sum(sizes[:i]) for i, size in enumerate(sizes)),
        "foreach": total,
        "fused": 0,
    }[optimizer]
    return max((4 * total + activation_bytes, "backward"), (4 * total + before, "step"))


# %% wrong: matrices_only
"""Multiplies the first two dimensions, so it knows no tensor of three. [earns 1]"""


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = []
    for shape in shapes:
        rows, columns = (*shape, 1, 1)[:2]
        sizes.append(4 * rows * columns)
    total, temporaries = sum(sizes), 0
    if optimizer == "for-loop":
        temporaries = max(2 * own + last for own, last in zip(sizes, [0, *sizes], strict=False))
    elif optimizer == "foreach":
        temporaries = total
    if activation_bytes > temporaries:
        return 4 * total + activation_bytes, "backward"
    return 4 * total + temporaries, "step"


# %% wrong: at_least_one_dimension
"""A product that begins with the first dimension, which a single number hasn't got. [earns 0]"""


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = []
    for first, *others in shapes:
        size = 4 * first
        for other in others:
            size *= other
        sizes.append(size)
    total, temporaries = sum(sizes), 0
    if optimizer == "for-loop":
        temporaries = max(2 * own + last for own, last in zip(sizes, [0, *sizes], strict=False))
    elif optimizer == "foreach":
        temporaries = total
    if activation_bytes > temporaries:
        return 4 * total + activation_bytes, "backward"
    return 4 * total + temporaries, "step"


# %% wrong: kept_without_the_activations
"""Keeps results by shapes and optimizer, whatever the activations."""
import math

known = {}


def peak_of_step(shapes, activation_bytes, optimizer):
    key = tuple(map(tuple, shapes)), optimizer
    if key not in known:
        sizes = [4 * math.prod(shape) for shape in shapes]
        ways = {
            "for-loop": max(2 * own + last for own, last in zip(sizes, [0, *sizes], strict=False)),
            "foreach": sum(sizes),
            "fused": 0,
        }
        phase = "backward" if activation_bytes > ways[optimizer] else "step"
        known[key] = 4 * sum(sizes) + max(activation_bytes, ways[optimizer]), phase
    return known[key]


# %% wrong: numbers_left_out
"""A shape of no dimensions has no bytes. [earns 1]"""
import math


def peak_of_step(shapes, activation_bytes, optimizer):
    sizes = [4 * math.prod(shape) if shape else 0 for shape in shapes]
    pairs = zip(sizes, [0, *sizes])
    temporaries = {
        "for-loop": max(2 * own + before for own, before in pairs),
        "foreach": sum(sizes),
        "fused": 0,
    }
    backward = (4 * sum(sizes) + activation_bytes, "backward")
    return max(backward, (4 * sum(sizes) + temporaries[optimizer], "step"))
