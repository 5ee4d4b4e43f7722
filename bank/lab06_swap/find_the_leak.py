# %% right: fresh
"""No buffer at all: what `get` gives is new anyway."""


def mean_squares(host, handles):
    means = []
    for handle in handles:
        batch = host.get(handle)
        means.append((batch * batch).mean().item())
        del batch
    return means


# %% right: one_flat_buffer
"""One buffer for the longest batch; shorter ones take its beginning."""
import torch


def mean_squares(host, handles):
    if not handles:
        return []
    sizes = [torch.Size(handle.shape).numel() for handle in handles]
    buffer = torch.empty(max(sizes), device=handles[0].device)
    means = []
    for handle, size in zip(handles, sizes):
        batch = buffer[:size]
        batch.copy_(host.get(handle).flatten())
        means.append(batch.square().mean().item())
    return means


# %% right: keeps_one_shape
"""Empties the cache when another shape comes."""


def mean_squares(host, handles):
    buffers, means = {}, []
    for handle in handles:
        if handle.shape not in buffers:
            buffers.clear()
            buffers[handle.shape] = host.get(handle)
        else:
            buffers[handle.shape].copy_(host.get(handle))
        batch = buffers[handle.shape]
        means.append((batch * batch).mean().item())
        del batch
    return means


# %% right: dot_product
"""A comprehension, and no temporary at all; the values come as tensors."""
import torch


def mean_squares(host, handles):
    def mean(batch):
        flat = batch.flatten()
        return torch.dot(flat, flat) / flat.numel()

    return [mean(host.get(handle)) for handle in handles]


# %% wrong: buffer_for_each_shape
"""The given code, as it was. [earns 1]"""


def mean_squares(host, handles):
    buffers, means = {}, []
    for handle in handles:
        if handle.shape not in buffers:
            buffers[handle.shape] = host.get(handle)
        else:
            buffers[handle.shape].copy_(host.get(handle))
        batch = buffers[handle.shape]
        means.append((batch * batch).mean().item())
    return means


# %% wrong: empties_at_the_end
"""Empties the cache, but only once all shapes have been in it. [earns 1]"""


def mean_squares(host, handles):
    buffers, means = {}, []
    for handle in handles:
        if handle.shape not in buffers:
            buffers[handle.shape] = host.get(handle)
        else:
            buffers[handle.shape].copy_(host.get(handle))
        batch = buffers[handle.shape]
        means.append((batch * batch).mean().item())
    buffers.clear()
    return means


# %% wrong: all_batches_at_once
"""Gets all batches before it looks at one. [earns 1]"""


def mean_squares(host, handles):
    batches = [host.get(handle) for handle in handles]
    return [(batch * batch).mean().item() for batch in batches]


# %% wrong: temporaries
"""Holds the last batch and its square while the next two are made. [earns 1]"""


def mean_squares(host, handles):
    means = []
    for handle in handles:
        copy = host.get(handle).clone()
        absolute = copy.abs()
        square = absolute * absolute
        means.append(square.mean().item())
    return means


# %% wrong: stale_buffer
"""Keeps means by shape, as if a shape had one batch only. [earns 0]"""


def mean_squares(host, handles):
    by_shape = {}
    for handle in handles:
        if handle.shape not in by_shape:
            batch = host.get(handle)
            by_shape[handle.shape] = (batch * batch).mean().item()
            del batch
    return [by_shape[handle.shape] for handle in handles]


# %% wrong: counts_padding
"""Pads every batch to the longest, and takes the mean of that."""
import torch


def mean_squares(host, handles):
    longest = max((handle.shape[0] for handle in handles), default=0)
    means = []
    for handle in handles:
        batch = host.get(handle)
        means.append((batch * batch).sum().item() / (longest * handle.shape[1]))
        del batch
    return means


# %% wrong: not_squared
"""The plain mean."""


def mean_squares(host, handles):
    return [host.get(handle).mean().item() for handle in handles]


# %% wrong: last_batch_left_out
"""Ends one batch early."""


def mean_squares(host, handles):
    means = []
    for i in range(len(handles) - 1):
        batch = host.get(handles[i])
        means.append((batch * batch).mean().item())
        del batch
    return means


# %% wrong: frees_the_batches
"""Frees each batch on the host, which isn't its own."""


def mean_squares(host, handles):
    means = []
    for handle in handles:
        batch = host.get(handle)
        means.append((batch * batch).mean().item())
        host.free(handle)
    return means


# %% right: norm
"""By the norm, which rounds differently."""
import torch


def mean_squares(host, handles):
    means = []
    for handle in handles:
        batch = host.get(handle)
        means.append((torch.linalg.vector_norm(batch) ** 2 / batch.numel()).item())
    return means


# %% wrong: arrays_kept
"""Keeps all batches as numpy arrays. [earns 1]"""


def mean_squares(host, handles):
    arrays = [host.get(handle).numpy().copy() for handle in handles]
    return [float((array * array).mean()) for array in arrays]


# %% wrong: squares_written
"""Writes the squares over the batches on the host."""


def mean_squares(host, handles):
    means = []
    for handle in handles:
        squares = host.get(handle).square_()
        host.write(handle, squares)
        means.append(squares.mean().item())
    return means


# %% wrong: batches_put_again
"""Frees each batch and puts it again, under a handle that the caller doesn't know."""


def mean_squares(host, handles):
    means = []
    for handle in handles:
        batch = host.get(handle)
        host.free(handle)
        means.append(batch.square().mean().item())
        host.put(batch)
    return means


# %% wrong: handles_used_up
"""Takes each handle out of the caller's list."""


def mean_squares(host, handles):
    means = []
    while handles:
        means.append(host.get(handles.pop(0)).square().mean().item())
    return means


# %% wrong: square_of_the_mean
"""Squares the mean. [earns 0]"""


def mean_squares(host, handles):
    return [host.get(handle).mean().square().item() for handle in handles]


# %% wrong: in_float16
"""Computes in 16 bits to save memory. [earns 0]"""


def mean_squares(host, handles):
    return [host.get(handle).half().square().mean().item() for handle in handles]


# %% wrong: generator_returned
"""Returns a generator. [earns 0]"""
def mean_squares(host, handles):
    return (host.get(handle).square_().mean().item() for handle in handles)


# %% wrong: fails_without_batches
"""Fails if there are no batches. [earns 1]"""
def mean_squares(host, handles):
    most = max(handle.shape[0] for handle in handles)
    means = []
    for handle in handles:
        assert handle.shape[0] <= most
        means.append(host.get(handle).square_().mean().item())
    return means


# %% right: next_one
"""Gets the next batch while this one is reduced: three at once."""
def mean_squares(host, handles):
    means, following = [], None
    for i, handle in enumerate(handles):
        batch = host.get(handle) if following is None else following
        following = host.get(handles[i + 1]) if i + 1 < len(handles) else None
        means.append(batch.mul_(batch).mean().item())
        del batch
    return means


# %% wrong: each_handle_once
"""A dict by handle keeps one number of each. [earns 1]"""
import torch
def mean_squares(host, handles):
    return [host.get(h).square().mean().item() for h in dict.fromkeys(handles)]
