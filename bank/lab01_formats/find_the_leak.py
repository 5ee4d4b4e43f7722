# %% right: clone
"""Copies each half, so the whole tensor can go."""
import torch


def upper_halves(load, count):
    kept = []
    for i in range(count):
        x = load(i)
        kept.append(x.view(torch.int16)[1::2].clone())
    return kept


# %% right: contiguous
"""A strided view is not contiguous, so this makes a copy."""
import torch


def upper_halves(load, count):
    return [load(i).view(torch.int16)[1::2].contiguous() for i in range(count)]


# %% right: shifted
"""Shifts the upper half down; two temporaries of the whole size."""
import torch


def upper_halves(load, count):
    kept = []
    for i in range(count):
        bits = load(i).view(torch.int32)
        kept.append((bits >> 16).to(torch.int16))
    return kept


# %% right: copied_into_one
"""One tensor for all halves; what is returned are views of that."""
import torch


def upper_halves(load, count):
    first = load(0).view(torch.int16)[1::2]
    whole = torch.empty(count, len(first), dtype=torch.int16)
    whole[0] = first
    for i in range(1, count):
        whole[i] = load(i).view(torch.int16)[1::2]
    return list(whole)


# %% right: to_with_copy
"""`to` with copy=True copies even where the dtype stays."""
import torch


def upper_halves(load, count):
    kept = []
    for i in range(count):
        half = load(i).view(torch.int16)[1::2]
        kept.append(half.to(torch.int16, copy=True))
        del half
    return kept


# %% right: numpy
"""Copies in numpy, and comes back without a copy."""
import numpy as np
import torch


def upper_halves(load, count):
    kept = []
    for i in range(count):
        halves = load(i).numpy().view(np.int16)[1::2]
        kept.append(torch.from_numpy(np.ascontiguousarray(halves)))
    return kept


# %% wrong: keeps_storage
"""Handed in as it was given."""
import torch


def upper_halves(load, count):
    kept = []
    for i in range(count):
        x = load(i)
        kept.append(x.view(torch.int16)[1::2])
    return kept


# %% wrong: deletes_the_name
"""`del x` removes a name; the view still holds the storage."""
import gc

import torch


def upper_halves(load, count):
    kept = []
    for i in range(count):
        x = load(i)
        kept.append(x.view(torch.int16)[1::2])
        del x
        gc.collect()
    return kept


# %% wrong: reshape
"""One dimension with a stride needs no copy to be reshaped."""
import torch


def upper_halves(load, count):
    return [load(i).view(torch.int16)[1::2].reshape(-1) for i in range(count)]


# %% wrong: detach
"""detach shares the storage."""
import torch


def upper_halves(load, count):
    return [load(i).view(torch.int16)[1::2].detach() for i in range(count)]


# %% wrong: to_the_same_dtype
"""`to` returns the tensor itself where nothing is to be changed."""
import torch


def upper_halves(load, count):
    return [load(i).view(torch.int16)[1::2].to(torch.int16) for i in range(count)]


# %% wrong: clones_the_whole
"""Copies all of it, and keeps a view of the copy."""
import torch


def upper_halves(load, count):
    return [load(i).clone().view(torch.int16)[1::2] for i in range(count)]


# %% wrong: shallow_copy
"""copy.copy makes another tensor on the same storage."""
import copy

import torch


def upper_halves(load, count):
    return [copy.copy(load(i).view(torch.int16)[1::2]) for i in range(count)]


# %% wrong: loads_all
"""Loads everything before the first tensor is done with."""
import torch


def upper_halves(load, count):
    loaded = [load(i) for i in range(count)]
    return [x.view(torch.int16)[1::2].clone() for x in loaded]


# %% wrong: rounds
"""Rounds to the nearest bf16 where the code cuts off."""
import torch


def upper_halves(load, count):
    return [load(i).bfloat16().view(torch.int16) for i in range(count)]


# %% wrong: lower_halves
"""Takes the first of the two integers."""
import torch


def upper_halves(load, count):
    return [load(i).view(torch.int16)[::2].clone() for i in range(count)]


# %% wrong: lists_of_numbers
"""Python's numbers take far more than 2 bytes."""
import torch


def upper_halves(load, count):
    return [load(i).view(torch.int16)[1::2].tolist() for i in range(count)]


# %% wrong: many_temporaries
"""Copies each half, by way of two tensors of 64 bits."""
import torch


def upper_halves(load, count):
    kept = []
    for i in range(count):
        wide = load(i).view(torch.int32).to(torch.int64)
        upper = wide >> 16
        kept.append(upper.to(torch.int16))
    return kept

# %% right: numpy_arrays
"""numpy arrays of int16."""


import numpy as np
def upper_halves(load, count):
    return [np.array(load(i).numpy().view(np.int16)[1::2]) for i in range(count)]

# %% wrong: stack_at_end
"""Stacks all halves at the end: twice the halves."""


def upper_halves(load, count):
    kept = [load(i).view(torch.int16)[1::2].clone() for i in range(count)]
    return list(torch.stack(kept)) if kept else []
