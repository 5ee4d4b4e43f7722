# %% right: one_layer_at_a_time
"""Gather, use, clone the diagonal."""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    diagonals = []
    for shard in shards:
        full = torch.empty(world * len(shard))
        dist.all_gather(list(full.chunk(world)), shard)
        w = full.view(x.shape[1], -1)
        x = torch.relu(x @ w)
        diagonals.append(w.diagonal().clone())
    return x, torch.stack(diagonals)


# %% right: one_buffer
"""One buffer for all layers."""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world, width = dist.get_world_size(), x.shape[1]
    buffer = torch.empty(width * width)
    diagonals = torch.empty(len(shards), width)
    for number, shard in enumerate(shards):
        dist.all_gather(list(buffer.chunk(world)), shard)
        w = buffer.view(width, width)
        x = (x @ w).clamp(min=0)
        diagonals[number] = w.diagonal()
    return x, diagonals


# %% right: by_broadcast
"""Each rank sends its shard in turn; a function's locals go at its end."""

import torch
import torch.distributed as dist


def layer(x, shard, into):
    rank, pieces = dist.get_rank(), []
    for owner in range(dist.get_world_size()):
        piece = shard if owner == rank else torch.empty_like(shard)
        dist.broadcast(piece, owner)
        pieces.append(piece)
    w = torch.cat(pieces).reshape(x.shape[1], x.shape[1])
    into.append(torch.diagonal(w).clone())
    return torch.relu(x @ w)


def replicated_by_mistake(x, shards):
    diagonals = []
    for shard in shards:
        x = layer(x, shard, diagonals)
    return x, torch.stack(diagonals)


# %% wrong: all_gathered
"""As it was given. [earns 1]"""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    layers = []
    for shard in shards:
        full = torch.empty(world * len(shard))
        dist.all_gather(list(full.chunk(world)), shard)
        layers.append(full.view(x.shape[1], -1))
    diagonals = [w.diagonal() for w in layers]
    for w in layers:
        x = torch.relu(x @ w)
    return x, torch.stack(diagonals)


# %% wrong: views_stay
"""The list is gone, the views are not. [earns 1]"""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    diagonals = []
    for shard in shards:
        full = torch.empty(world * len(shard))
        dist.all_gather(list(full.chunk(world)), shard)
        w = full.view(x.shape[1], -1)
        x = torch.relu(x @ w)
        diagonals.append(w.diagonal())
    return x, torch.stack(diagonals)


# %% wrong: detached_views
"""detach() makes no copy. [earns 1]"""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    diagonals = []
    for shard in shards:
        full = torch.empty(world * len(shard))
        dist.all_gather(list(full.chunk(world)), shard)
        w = full.view(x.shape[1], -1)
        x = torch.relu(x @ w)
        diagonals.append(w.diagonal().detach())
    return x, torch.stack(diagonals)


# %% wrong: list_beside
"""The diagonals are copied, and the list stays. [earns 1]"""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    layers = []
    for shard in shards:
        full = torch.empty(world * len(shard))
        dist.all_gather(list(full.chunk(world)), shard)
        layers.append(full.view(x.shape[1], -1))
    diagonals = [w.diagonal().clone() for w in layers]
    for w in layers:
        x = torch.relu(x @ w)
    return x, torch.stack(diagonals)


# %% wrong: all_at_once
"""One gather for all layers. [earns 1]"""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world, width = dist.get_world_size(), x.shape[1]
    mine = torch.cat(shards)
    every = [torch.empty_like(mine) for _ in range(world)]
    dist.all_gather(every, mine)
    diagonals = []
    for number in range(len(shards)):
        size = len(shards[0])
        w = torch.cat([one[number * size : (number + 1) * size] for one in every]).view(width, -1)
        x = torch.relu(x @ w)
        diagonals.append(w.diagonal().clone())
    return x, torch.stack(diagonals)


# %% wrong: no_activation
"""relu is left out. [earns 0]"""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    diagonals = []
    for shard in shards:
        full = torch.empty(world * len(shard))
        dist.all_gather(list(full.chunk(world)), shard)
        w = full.view(x.shape[1], -1)
        x = x @ w
        diagonals.append(w.diagonal().clone())
    return x, torch.stack(diagonals)


# %% wrong: transposed
"""The product is with the transpose. [earns 0]"""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    diagonals = []
    for shard in shards:
        full = torch.empty(world * len(shard))
        dist.all_gather(list(full.chunk(world)), shard)
        w = full.view(x.shape[1], -1)
        x = torch.relu(x @ w.T)
        diagonals.append(w.diagonal().clone())
    return x, torch.stack(diagonals)


# %% wrong: first_rows
"""First rows for diagonals. [earns 0]"""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    diagonals = []
    for shard in shards:
        full = torch.empty(world * len(shard))
        dist.all_gather(list(full.chunk(world)), shard)
        w = full.view(x.shape[1], -1)
        x = torch.relu(x @ w)
        diagonals.append(w[0].clone())
    return x, torch.stack(diagonals)


# %% wrong: own_shard_only
"""Nothing is gathered. [earns 0]"""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    diagonals = []
    for shard in shards:
        w = shard.repeat(dist.get_world_size()).view(x.shape[1], -1)
        x = torch.relu(x @ w)
        diagonals.append(w.diagonal().clone())
    return x, torch.stack(diagonals)


# %% right: generator
"""A generator gathers, the loop uses."""

import torch
import torch.distributed as dist


def gathered(shards, width):
    n = dist.get_world_size()
    for s in shards:
        parts = [torch.empty_like(s) for _ in range(n)]
        dist.all_gather(parts, s)
        yield torch.cat(parts).reshape(width, width)


def replicated_by_mistake(x, shards):
    kept = torch.empty(len(shards), x.size(1))
    for i, w in enumerate(gathered(shards, x.size(1))):
        x = (x @ w).clamp(min=0)
        kept[i] = torch.diag(w)
        del w
    return x, kept


# %% right: recursive
"""Layer by layer, recursively."""

import torch
import torch.distributed as dist


def one(x, shard):
    flat = torch.empty(dist.get_world_size() * shard.numel())
    dist.all_gather(list(flat.split(shard.numel())), shard)
    w = flat.unflatten(0, (x.shape[1], -1))
    return torch.relu(torch.mm(x, w)), w.diagonal().clone()


def replicated_by_mistake(x, shards):
    if not len(shards):
        return x, torch.empty(0, x.shape[1])
    x, d = one(x, shards[0])
    x, rest = replicated_by_mistake(x, shards[1:])
    return x, torch.cat([d[None], rest])


# %% right: into_tensor
"""all_gather_into_tensor into one buffer for all layers."""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    n = x.shape[1]
    buffer, diagonals = torch.empty(n * n), []
    for shard in shards:
        dist.all_gather_into_tensor(buffer, shard)
        w = buffer.view(n, n)
        diagonals += [w.diag()]
        x = nn_relu(x.matmul(w))
    return x, torch.stack(diagonals)


nn_relu = torch.nn.functional.relu


# %% wrong: numpy_views
"""Diagonals as numpy views, which hold the weights. [earns 1]"""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    diagonals = []
    for shard in shards:
        flat = torch.empty(world * len(shard))
        dist.all_gather(list(flat.chunk(world)), shard)
        w = flat.view(x.shape[1], x.shape[1])
        x = torch.relu(x @ w)
        diagonals.append(w.numpy().diagonal())
    import numpy as np

    return x, torch.from_numpy(np.stack(diagonals))


# %% wrong: closures_keep
"""Diagonals are taken at the end, by closures that hold the layers. [earns 1]"""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    diagonals = []
    for shard in shards:
        flat = torch.empty(world * len(shard))
        dist.all_gather(list(flat.chunk(world)), shard)
        w = flat.view(x.shape[1], x.shape[1])
        x = torch.relu(x @ w)
        diagonals.append(lambda w=w: w.diagonal())
    return x, torch.stack([d() for d in diagonals])


# %% wrong: shards_dropped
"""The shards given are emptied on the way, so a second pass has none."""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    diagonals = []
    for shard in shards:
        flat = torch.empty(world * len(shard))
        dist.all_gather(list(flat.chunk(world)), shard)
        shard.data = torch.empty(0)
        w = flat.view(x.shape[1], x.shape[1])
        x = torch.relu(x @ w)
        diagonals.append(w.diagonal().clone())
    return x, torch.stack(diagonals)


# %% wrong: x_in_place
"""The input is overwritten."""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    diagonals = []
    for shard in shards:
        flat = torch.empty(world * len(shard))
        dist.all_gather(list(flat.chunk(world)), shard)
        w = flat.view(x.shape[1], x.shape[1])
        x.copy_(torch.relu(x @ w))
        diagonals.append(w.diagonal().clone())
    return x, torch.stack(diagonals)


# %% wrong: ranks_in_reverse
"""Shards are put together in the wrong order."""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    diagonals = []
    for shard in shards:
        parts = [torch.empty_like(shard) for _ in range(world)]
        dist.all_gather(parts, shard)
        w = torch.cat(parts[::-1]).view(x.shape[1], x.shape[1])
        x = torch.relu(x @ w)
        diagonals.append(w.diagonal().clone())
    return x, torch.stack(diagonals)


# %% wrong: two_ranks_only
"""The number of ranks is that of the example. [earns 1]"""

import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = 2
    diagonals = []
    for shard in shards:
        full = torch.empty(world * len(shard))
        dist.all_gather(list(full.chunk(world)), shard)
        w = full.view(x.shape[1], -1)
        x = torch.relu(x @ w)
        diagonals.append(w.diagonal().clone())
    return x, torch.stack(diagonals)


# %% wrong: some_gathered
"""Every other diagonal is a view. [earns 1]"""
import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    diagonals = []
    for number, shard in enumerate(shards):
        flat = torch.empty(world * len(shard))
        dist.all_gather(list(flat.chunk(world)), shard)
        w = flat.view(x.shape[1], -1)
        x = torch.relu(x @ w)
        diagonals.append(w.diagonal().clone() if number % 2 else w.diagonal())
    return x, torch.stack(diagonals)


# %% wrong: views_of_one_buffer
"""One buffer for all layers, and views of it."""
import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world = dist.get_world_size()
    diagonals = []
    buffer = torch.empty(x.shape[1] ** 2)
    for shard in shards:
        dist.all_gather(list(buffer.chunk(world)), shard)
        w = buffer.view(x.shape[1], -1)
        x = torch.relu(x @ w)
        diagonals.append(w.diagonal())
    return x, torch.stack(diagonals)


# %% wrong: shards_copied
"""Gathers one layer at a time, from copies of all shards. [earns 1]"""
import torch
import torch.distributed as dist


def replicated_by_mistake(x, shards):
    world, diagonals = dist.get_world_size(), []
    for shard in [shard.clone() for shard in shards]:
        flat = torch.empty(world * len(shard))
        dist.all_gather(list(flat.chunk(world)), shard)
        w = flat.view(x.shape[1], x.shape[1])
        diagonals.append(w.diagonal().clone())
        x = torch.relu(x @ w)
    return x, torch.stack(diagonals)
