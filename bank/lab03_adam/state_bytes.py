# %% right: helper
"""A helper counts one tensor."""
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
    return sum(of_tensor(shape, optimizer) for shape in shapes)


# %% right: np_prod
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


# %% right: numpy
"""Numpy's prod, and a numpy integer as the result."""
import numpy as np


def state_bytes(shapes, optimizer):
    counts = np.array([np.prod(shape, dtype=np.int64) for shape in shapes], dtype=np.int64)
    if optimizer in ("sgd", "momentum", "adam"):
        return {"sgd": 0, "momentum": 4, "adam": 8}[optimizer] * counts.sum()
    if optimizer == "adam8bit":
        return (2 * counts + 8 * np.ceil(counts / 256).astype(np.int64)).sum()
    return 4 * sum(
        n // shape[-1] + n // shape[-2] if len(shape) > 1 else n for n, shape in zip(counts, shapes)
    )


# %% right: torch_meta
"""Makes the state as tensors without memory, and adds up their bytes."""
import torch


def state_bytes(shapes, optimizer):
    total = 0
    for shape in shapes:
        p = torch.empty(shape, device="meta")
        state = []
        if optimizer == "momentum":
            state = [p]
        elif optimizer == "adam":
            state = [p, p.clone()]
        elif optimizer == "adafactor":
            state = [p[..., 0], p[..., 0, :]] if p.ndim > 1 else [p]
        elif optimizer == "adam8bit":
            codes = torch.empty(p.numel(), dtype=torch.uint8, device="meta")
            scales = torch.empty((p.numel() + 255) // 256, device="meta")
            state = 2 * [codes, scales]
        total += sum(t.numel() * t.element_size() for t in state)
    return total


# %% wrong: batches_left_out
"""Forgets the leading dimensions."""
import math


def of_tensor(shape, optimizer):
    n = math.prod(shape)
    if optimizer == "momentum":
        return 4 * n
    if optimizer == "adam":
        return 8 * n
    if optimizer == "adafactor":
        if len(shape) >= 2:
            return 4 * (shape[-1] + shape[-2])
        return 4 * n
    if optimizer == "adam8bit":
        return 2 * (n + 4 * -(-n // 256))
    return 0


def state_bytes(shapes, optimizer):
    return sum(of_tensor(shape, optimizer) for shape in shapes)


# %% wrong: blocks_over_all_tensors
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


# %% wrong: blocks_rounded_down
"""Drops the short block."""
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
        return 2 * (n + 4 * (n // 256))
    return 0


def state_bytes(shapes, optimizer):
    return sum(of_tensor(shape, optimizer) for shape in shapes)


# %% wrong: counters_too
"""Counts the step counters."""
import math


def of_tensor(shape, optimizer):
    n = math.prod(shape)
    if optimizer == "momentum":
        return 4 * n
    if optimizer == "adam":
        return 8 * n + 4
    if optimizer == "adafactor":
        if len(shape) >= 2:
            return 4 * (n // shape[-1] + n // shape[-2])
        return 4 * n
    if optimizer == "adam8bit":
        return 2 * (n + 4 * -(-n // 256))
    return 0


def state_bytes(shapes, optimizer):
    return sum(of_tensor(shape, optimizer) for shape in shapes)


# %% wrong: elements
"""Counts values, not bytes."""
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
    return sum(of_tensor(shape, optimizer) for shape in shapes) // 4


# %% wrong: first_moment_in_adafactor
"""Gives Adafactor a first moment."""
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
    return sum(of_tensor(s, optimizer) + 4 * math.prod(s) * (optimizer == 'adafactor') for s in shapes)


# %% wrong: flattened_matrix
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


# %% wrong: half_precision
"""Takes moments for 16-bit numbers."""
import math


def of_tensor(shape, optimizer):
    n = math.prod(shape)
    if optimizer == "momentum":
        return 2 * n
    if optimizer == "adam":
        return 4 * n
    if optimizer == "adafactor":
        if len(shape) >= 2:
            return 2 * (n // shape[-1] + n // shape[-2])
        return 4 * n
    if optimizer == "adam8bit":
        return 2 * (n + 4 * -(-n // 256))
    return 0


def state_bytes(shapes, optimizer):
    return sum(of_tensor(shape, optimizer) for shape in shapes)


# %% wrong: no_scales
"""Forgets the scales."""
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
        return 2 * n
    return 0


def state_bytes(shapes, optimizer):
    return sum(of_tensor(shape, optimizer) for shape in shapes)


# %% wrong: not_factored
"""Keeps Adafactor's second moment whole."""
import math


def of_tensor(shape, optimizer):
    n = math.prod(shape)
    if optimizer == "momentum":
        return 4 * n
    if optimizer == "adam":
        return 8 * n
    if optimizer == "adafactor":
        if len(shape) >= 2:
            return 4 * n
        return 4 * n
    if optimizer == "adam8bit":
        return 2 * (n + 4 * -(-n // 256))
    return 0


def state_bytes(shapes, optimizer):
    return sum(of_tensor(shape, optimizer) for shape in shapes)


# %% wrong: one_moment
"""Has one moment in Adam."""
import math


def of_tensor(shape, optimizer):
    n = math.prod(shape)
    if optimizer == "momentum":
        return 4 * n
    if optimizer == "adam":
        return 4 * n
    if optimizer == "adafactor":
        if len(shape) >= 2:
            return 4 * (n // shape[-1] + n // shape[-2])
        return 4 * n
    if optimizer == "adam8bit":
        return 2 * (n + 4 * -(-n // 256))
    return 0


def state_bytes(shapes, optimizer):
    return sum(of_tensor(shape, optimizer) for shape in shapes)


# %% wrong: parameters_too
"""Counts the parameters as well."""
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
    return sum(of_tensor(s, optimizer) + 4 * math.prod(s) for s in shapes)


# %% wrong: rounds_up_one_short
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


# %% wrong: scales_once
"""One scale serves both moments."""
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
        return 2 * n + 4 * -(-n // 256)
    return 0


def state_bytes(shapes, optimizer):
    return sum(of_tensor(shape, optimizer) for shape in shapes)


# %% wrong: twelve_bytes
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


# %% wrong: sum_of_sizes
"""Adds up all dimensions of a tensor for Adafactor."""
import math


def of_tensor(shape, optimizer):
    n = math.prod(shape)
    if optimizer == "adafactor":
        return 4 * (sum(shape) if len(shape) >= 2 else n)
    per_value = {"sgd": 0, "momentum": 4, "adam": 8}
    if optimizer in per_value:
        return per_value[optimizer] * n
    return 2 * (n + 4 * -(-n // 256))


def state_bytes(shapes, optimizer):
    return sum(of_tensor(shape, optimizer) for shape in shapes)


# %% right: real_tensors
"""Makes the state as tensors, and adds up nbytes."""
import torch


def state_bytes(shapes, optimizer):
    total = 0
    for shape in shapes:
        p = torch.empty(shape, device="meta")
        if optimizer == "momentum":
            kept = [torch.empty_like(p)]
        elif optimizer == "adam":
            kept = [torch.empty_like(p)] * 2
        elif optimizer == "adafactor":
            kept = [p.sum(-1), p.sum(-2)] if p.dim() > 1 else [p]
        elif optimizer == "adam8bit":
            codes = torch.empty_like(p, dtype=torch.uint8)
            kept = [codes, torch.empty(len(codes.flatten().split(256)), device="meta")] * 2
        else:
            kept = []
        total += sum(x.nbytes for x in kept)
    return total


# %% wrong: not_factored_if_flat
"""Adafactor looks at dimensions larger than 1."""
import math


def state_bytes(shapes, optimizer):
    total = 0
    for shape in shapes:
        n = math.prod(shape)
        if optimizer == "momentum":
            total += 4 * n
        elif optimizer == "adam":
            total += 8 * n
        elif optimizer == "adafactor" and len([d for d in shape if d > 1]) >= 2:
            total += 4 * (n // shape[-1] + n // shape[-2])
        elif optimizer == "adafactor":
            total += 4 * n
        elif optimizer == "adam8bit":
            total += 2 * (n + 4 * math.ceil(n / 256))
    return total


# %% wrong: distinct_shapes
"""Counts tensors of one shape once."""
import math


def state_bytes(shapes, optimizer):
    total = 0
    for shape in set(map(tuple, shapes)):
        n = math.prod(shape)
        if optimizer == "momentum":
            total += 4 * n
        elif optimizer == "adam":
            total += 8 * n
        elif optimizer == "adafactor":
            total += 4 * (n // shape[-1] + n // shape[-2] if len(shape) > 1 else n)
        elif optimizer == "adam8bit":
            total += 2 * (n + 4 * -(-n // 256))
    return total


# %% wrong: four_dimensions_at_most
"""Knows matrices and kernels of convolutions of images, but takes five dimensions for a vector."""
import math


def of_one(shape, optimizer):
    n = math.prod(shape)
    if optimizer == "adafactor" and 2 <= len(shape) <= 4:
        return 4 * (n // shape[-1] + n // shape[-2])
    scales = 4 * math.ceil(n / 256)
    of_all = {"sgd": 0, "momentum": 4 * n, "adam": 8 * n, "adafactor": 4 * n}
    return {**of_all, "adam8bit": 2 * (n + scales)}[optimizer]


def state_bytes(shapes, optimizer):
    return sum(of_one(shape, optimizer) for shape in shapes)
