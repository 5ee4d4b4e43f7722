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
