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
