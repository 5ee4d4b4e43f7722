# %% right: largest_first
"""Dealt out by size; each is reduced in a hook."""

import torch
import torch.distributed as dist


def shard_gradients(module):
    loads, hooks = [0] * dist.get_world_size(), []
    for p in sorted(module.parameters(), key=torch.numel, reverse=True):
        owner = loads.index(min(loads))
        loads[owner] += p.numel()
        hooks.append(p.register_post_accumulate_grad_hook(keep_at(owner)))
    return hooks


def keep_at(owner):
    def hook(p):
        p.grad /= dist.get_world_size()
        dist.reduce(p.grad, owner)
        if dist.get_rank() != owner:
            p.grad = None

    return hook


# %% right: by_all_reduce
"""All ranks get the sum, the owner keeps it; parameters are dealt out in turn."""

import torch
import torch.distributed as dist


def shard_gradients(module):
    owned = {}
    for number, p in enumerate(sorted(module.parameters(), key=lambda p: -p.numel())):
        owned[p] = number % dist.get_world_size() == dist.get_rank()

    def exchange(p):
        dist.all_reduce(p.grad)
        if owned[p]:
            p.grad.div_(dist.get_world_size())
        else:
            p.grad = None

    return [p.register_post_accumulate_grad_hook(exchange) for p in owned]


# %% right: sent_to_the_owner
"""By send and recv; a class holds the hooks."""

import torch
import torch.distributed as dist


class Handle:
    def __init__(self, module):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        params = list(module.parameters())
        total, start = sum(p.numel() for p in params), 0
        self.owner, self.hooks = {}, []
        for p in params:
            self.owner[p] = min(self.world - 1, (start + p.numel() // 2) * self.world // total)
            start += p.numel()
            self.hooks.append(p.register_post_accumulate_grad_hook(self))

    def __call__(self, p):
        if self.rank != self.owner[p]:
            dist.send(p.grad, self.owner[p])
            p.grad = None
            return
        came = torch.empty_like(p.grad)
        for other in range(self.world):
            if other != self.rank:
                dist.recv(came, other)
                p.grad += came
        p.grad /= self.world

    def remove(self):
        for hook in self.hooks:
            hook.remove()


def shard_gradients(module):
    return Handle(module)


# %% wrong: sums
"""Not divided. [earns 0]"""

import torch
import torch.distributed as dist


def shard_gradients(module):
    loads, hooks = [0] * dist.get_world_size(), []
    for p in sorted(module.parameters(), key=torch.numel, reverse=True):
        owner = loads.index(min(loads))
        loads[owner] += p.numel()
        hooks.append(p.register_post_accumulate_grad_hook(keep_at(owner)))
    return hooks


def keep_at(owner):
    def hook(p):
        dist.reduce(p.grad, owner)
        if dist.get_rank() != owner:
            p.grad = None

    return hook


# %% wrong: own
"""Nothing is reduced. [earns 0]"""

import torch
import torch.distributed as dist


def shard_gradients(module):
    loads, hooks = [0] * dist.get_world_size(), []
    for p in sorted(module.parameters(), key=torch.numel, reverse=True):
        owner = loads.index(min(loads))
        loads[owner] += p.numel()
        hooks.append(p.register_post_accumulate_grad_hook(keep_at(owner)))
    return hooks


def keep_at(owner):
    def hook(p):
        if dist.get_rank() != owner:
            p.grad = None

    return hook


# %% wrong: everybody
"""All keep what was reduced. [earns 0]"""

import torch
import torch.distributed as dist


def shard_gradients(module):
    loads, hooks = [0] * dist.get_world_size(), []
    for p in sorted(module.parameters(), key=torch.numel, reverse=True):
        owner = loads.index(min(loads))
        loads[owner] += p.numel()
        hooks.append(p.register_post_accumulate_grad_hook(keep_at(owner)))
    return hooks


def keep_at(owner):
    def hook(p):
        p.grad /= dist.get_world_size()
        dist.all_reduce(p.grad)

    return hook


# %% wrong: nobody
"""The owner lets go. [earns 0]"""

import torch
import torch.distributed as dist


def shard_gradients(module):
    loads, hooks = [0] * dist.get_world_size(), []
    for p in sorted(module.parameters(), key=torch.numel, reverse=True):
        owner = loads.index(min(loads))
        loads[owner] += p.numel()
        hooks.append(p.register_post_accumulate_grad_hook(keep_at(owner)))
    return hooks


def keep_at(owner):
    def hook(p):
        p.grad /= dist.get_world_size()
        dist.reduce(p.grad, owner)
        if True:
            p.grad = None

    return hook


# %% wrong: freed_late
"""All gradients wait for the end of backward. [earns 2]"""

import torch
import torch.distributed as dist


def shard_gradients(module):
    params, world = list(module.parameters()), dist.get_world_size()
    first = params[0]

    def finish():
        for number, p in enumerate(params):
            p.grad /= world
            dist.reduce(p.grad, number % world)
            if dist.get_rank() != number % world:
                p.grad = None

    def later(p):
        torch.autograd.Variable._execution_engine.queue_callback(finish)

    return first.register_post_accumulate_grad_hook(later)


# %% wrong: one_owner
"""Rank 0 owns all. [earns 2]"""

import torch
import torch.distributed as dist


def shard_gradients(module):
    loads, hooks = [0] * dist.get_world_size(), []
    for p in sorted(module.parameters(), key=torch.numel, reverse=True):
        owner = 0
        loads[owner] += p.numel()
        hooks.append(p.register_post_accumulate_grad_hook(keep_at(owner)))
    return hooks


def keep_at(owner):
    def hook(p):
        p.grad /= dist.get_world_size()
        dist.reduce(p.grad, owner)
        if dist.get_rank() != owner:
            p.grad = None

    return hook


# %% wrong: kept_in_a_list
"""What was freed is kept beside. [earns 2]"""

import torch
import torch.distributed as dist


def shard_gradients(module):
    loads, hooks = [0] * dist.get_world_size(), []
    for p in sorted(module.parameters(), key=torch.numel, reverse=True):
        owner = loads.index(min(loads))
        loads[owner] += p.numel()
        hooks.append(p.register_post_accumulate_grad_hook(keep_at(owner)))
    return hooks


kept = []


def keep_at(owner):
    def hook(p):
        p.grad /= dist.get_world_size()
        dist.reduce(p.grad, owner)
        kept.append(p.grad)
        if dist.get_rank() != owner:
            p.grad = None

    return hook


# %% wrong: others_skip
"""Ranks that do not own skip the reduction. [earns 0]"""

import torch
import torch.distributed as dist


def shard_gradients(module):
    loads, hooks = [0] * dist.get_world_size(), []
    for p in sorted(module.parameters(), key=torch.numel, reverse=True):
        owner = loads.index(min(loads))
        loads[owner] += p.numel()
        hooks.append(p.register_post_accumulate_grad_hook(keep_at(owner)))
    return hooks


def keep_at(owner):
    def hook(p):
        p.grad /= dist.get_world_size()
        if dist.get_rank() != owner:
            p.grad = None
        else:
            dist.reduce(p.grad, owner)

    return hook


# %% right: by_cumulative_bytes
"""In order, by the bytes before it."""

import torch
import torch.distributed as dist


def shard_gradients(module):
    rank, world = dist.get_rank(), dist.get_world_size()
    params = list(module.parameters())
    total = sum(p.numel() for p in params)
    before, handles = 0, []
    for p in params:
        owner = min(world - 1, (before + p.numel() // 2) * world // total)
        before += p.numel()

        def hook(p, owner=owner):
            dist.reduce(p.grad, dst=owner)
            p.grad = p.grad / world if rank == owner else None

        handles += [p.register_post_accumulate_grad_hook(hook)]
    return handles


# %% right: heap
"""A heap deals out the largest first."""

import torch
import torch.distributed as dist

import heapq
from functools import partial


def _reduce(owner, p):
    dist.reduce(p.grad, owner, op=dist.ReduceOp.SUM)
    if dist.get_rank() == owner:
        p.grad.div_(dist.get_world_size())
    else:
        p.grad = None


def shard_gradients(module):
    heap = [(0, r) for r in range(dist.get_world_size())]
    for p in sorted(module.parameters(), key=lambda p: -p.numel()):
        load, r = heapq.heappop(heap)
        heapq.heappush(heap, (load + p.numel(), r))
        p.register_post_accumulate_grad_hook(partial(_reduce, r))


# %% right: class_with_remove
"""An object with remove()."""

import torch
import torch.distributed as dist


class Shards:
    def __init__(self, module):
        self.owner, loads = {}, [0] * dist.get_world_size()
        for p in sorted(module.parameters(), key=lambda p: p.numel(), reverse=True):
            self.owner[p] = loads.index(min(loads))
            loads[self.owner[p]] += p.numel()
        self.handles = [p.register_post_accumulate_grad_hook(self) for p in self.owner]

    def __call__(self, p):
        dist.reduce(p.grad, self.owner[p])
        if dist.get_rank() == self.owner[p]:
            p.grad.mul_(1 / dist.get_world_size())
        else:
            p.grad = None

    def remove(self):
        for h in self.handles:
            h.remove()


shard_gradients = Shards


# %% wrong: round_robin
"""Dealt out in turn: one rank gets the weights, another the biases. [earns 2]"""

import torch
import torch.distributed as dist


def shard_gradients(module):
    rank, world = dist.get_rank(), dist.get_world_size()
    params, handles = list(module.parameters()), []
    owners = [n % world for n in range(len(params))]
    for p, owner in zip(params, owners):

        def hook(p, owner=owner):
            p.grad /= world
            dist.reduce(p.grad, owner)
            if rank != owner:
                p.grad = None

        handles.append(p.register_post_accumulate_grad_hook(hook))
    return handles


# %% wrong: by_layer_in_turn
"""Whole layers in turn, whatever their sizes. [earns 2]"""

import torch
import torch.distributed as dist


def shard_gradients(module):
    rank, world = dist.get_rank(), dist.get_world_size()
    params, handles = list(module.parameters()), []
    owners = [n // 2 % world for n in range(len(params))]
    for p, owner in zip(params, owners):

        def hook(p, owner=owner):
            p.grad /= world
            dist.reduce(p.grad, owner)
            if rank != owner:
                p.grad = None

        handles.append(p.register_post_accumulate_grad_hook(hook))
    return handles


# %% wrong: by_number
"""Equal numbers of parameters in order, whatever their sizes. [earns 2]"""

import torch
import torch.distributed as dist


def shard_gradients(module):
    rank, world = dist.get_rank(), dist.get_world_size()
    params, handles = list(module.parameters()), []
    owners = [n * world // len(params) for n in range(len(params))]
    for p, owner in zip(params, owners):

        def hook(p, owner=owner):
            p.grad /= world
            dist.reduce(p.grad, owner)
            if rank != owner:
                p.grad = None

        handles.append(p.register_post_accumulate_grad_hook(hook))
    return handles


# %% wrong: emptied_not_none
"""Others' gradients are empty tensors or zeros, not None."""

import torch
import torch.distributed as dist


def shard_gradients(module):
    rank, world = dist.get_rank(), dist.get_world_size()
    params, handles = list(module.parameters()), []
    owners = [n // 2 % world for n in range(len(params))]
    for p, owner in zip(params, owners):

        def hook(p, owner=owner):
            p.grad /= world
            dist.reduce(p.grad, owner)
            if rank != owner:
                p.grad.zero_()

        handles.append(p.register_post_accumulate_grad_hook(hook))
    return handles


# %% wrong: own_choice
"""Each rank takes itself for the owner."""

import torch
import torch.distributed as dist


def shard_gradients(module):
    rank, world = dist.get_rank(), dist.get_world_size()
    params, handles = list(module.parameters()), []
    owners = [rank] * len(params)
    for p, owner in zip(params, owners):

        def hook(p, owner=owner):
            p.grad /= world
            dist.reduce(p.grad, owner)
            if rank != owner:
                p.grad = None

        handles.append(p.register_post_accumulate_grad_hook(hook))
    return handles


# %% wrong: keeps_a_clone
"""The owner keeps a clone beside. [earns 2]"""

import torch
import torch.distributed as dist

_kept = {}


def shard_gradients(module):
    rank, world = dist.get_rank(), dist.get_world_size()
    loads = [0] * world
    for p in sorted(module.parameters(), key=torch.numel, reverse=True):
        owner = loads.index(min(loads))
        loads[owner] += p.numel()

        def hook(p, owner=owner):
            _kept[p] = p.grad.clone()
            dist.reduce(p.grad, owner)
            p.grad = p.grad / world if rank == owner else None

        p.register_post_accumulate_grad_hook(hook)


# %% wrong: reduced_after_backward
"""All gradients wait for the last one, then they are reduced. [earns 2]"""

import torch
import torch.distributed as dist


def shard_gradients(module):
    rank, world = dist.get_rank(), dist.get_world_size()
    params = list(module.parameters())
    loads, owner = [0] * world, {}
    for p in sorted(params, key=torch.numel, reverse=True):
        owner[p] = loads.index(min(loads))
        loads[owner[p]] += p.numel()

    def hook(p):
        if all(q.grad is not None for q in params):
            for q in params:
                dist.reduce(q.grad, owner[q])
                q.grad = q.grad / world if rank == owner[q] else None

    return [p.register_post_accumulate_grad_hook(hook) for p in params]


# %% wrong: children_only
"""Finds the layers that the module holds itself, not those of modules in it. [earns 1]"""

import torch.distributed as dist


def shard_gradients(module):
    loads, hooks = [0] * dist.get_world_size(), []
    params = [p for child in module.children() for p in child.parameters(recurse=False)]
    for p in sorted(params, key=lambda p: p.numel(), reverse=True):
        owner = loads.index(min(loads))
        loads[owner] += p.numel()
        hooks.append(p.register_post_accumulate_grad_hook(keep_at(owner)))
    return hooks


def keep_at(owner):
    def reduce(p):
        p.grad /= dist.get_world_size()
        dist.reduce(p.grad, owner)
        if dist.get_rank() != owner:
            p.grad = None

    return reduce


# %% wrong: linear_layers_only
"""Knows weights and biases of linear layers, and no other parameters. [earns 1]"""

import torch.distributed as dist
from torch import nn


def shard_gradients(module):
    loads, hooks = [0] * dist.get_world_size(), []
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    for layer in sorted(layers, key=lambda layer: -layer.weight.numel()):
        owner = loads.index(min(loads))
        loads[owner] += layer.weight.numel() + layer.bias.numel()
        for p in (layer.weight, layer.bias):
            hooks.append(p.register_post_accumulate_grad_hook(keep_at(owner)))
    return hooks


def keep_at(owner):
    def reduce(p):
        p.grad /= dist.get_world_size()
        dist.reduce(p.grad, owner)
        if dist.get_rank() != owner:
            p.grad = None

    return reduce


# %% right: owner_divides
"""Only the owner divides, after the sum; a partial binds each owner; names in any order."""

from functools import partial

import torch.distributed as dist


def _done(owner, p):
    dist.reduce(p.grad, dst=owner, op=dist.ReduceOp.SUM)
    if dist.get_rank() == owner:
        p.grad.div_(dist.get_world_size())
    else:
        p.grad = None


def shard_gradients(module):
    world = dist.get_world_size()
    held = dict.fromkeys(range(world), 0)
    handles = {}
    for name, p in sorted(module.named_parameters(), key=lambda item: (-item[1].nbytes, item[0])):
        owner = min(held, key=held.get)
        held[owner] += p.nbytes
        handles[name] = p.register_post_accumulate_grad_hook(partial(_done, owner))
    return handles
