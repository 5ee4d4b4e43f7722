# %% right: by_slices
"""Each rank updates its slice of each tensor."""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = (v / (1 - b2**t)).sqrt_().add_(self.eps)
            new = self.mine(p).addcdiv_(m, denominator, value=-self.lr / (1 - b1**t))
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.copy_(gathered[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% right: one_flat_tensor
"""All tensors are one, cut in world pieces; steps are counted for each tensor."""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.lr, self.betas, self.eps = lr, betas, eps
        self.world, self.rank = dist.get_world_size(), dist.get_rank()
        self.sizes = [p.numel() for p in self.params]
        self.each = -(-sum(self.sizes) // self.world)
        self.m, self.v = torch.zeros(self.each), torch.zeros(self.each)
        self.t = [0 for _ in self.params]

    def pieces(self):
        """What of each tensor lies in this rank's piece."""
        first, start = self.rank * self.each, 0
        for number, size in enumerate(self.sizes):
            begin, end = max(first, start), min(first + self.each, start + size)
            if begin < end:
                yield number, slice(begin - start, end - start), slice(begin - first, end - first)
            start += size

    @torch.no_grad()
    def step(self):
        new = torch.zeros(self.each)
        for number, p in enumerate(self.params):
            self.t[number] += p.grad is not None
        for number, inside, mine in self.pieces():
            p = self.params[number]
            old = p.reshape(-1)[inside]
            if p.grad is None:
                new[mine] = old
                continue
            g = p.grad.reshape(-1)[inside]
            m, v, t = self.m[mine], self.v[mine], self.t[number]
            m += (1 - self.betas[0]) * (g - m)
            v += (1 - self.betas[1]) * (g * g - v)
            m_hat, v_hat = m / (1 - self.betas[0] ** t), v / (1 - self.betas[1] ** t)
            new[mine] = old - self.lr * m_hat / (v_hat.sqrt() + self.eps)
        every = [torch.empty(self.each) for _ in range(self.world)]
        dist.all_gather(every, new)
        parts = torch.cat(every)[: sum(self.sizes)].split(self.sizes)
        for p, part in zip(self.params, parts):
            p.copy_(part.view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% right: torchs_adam_on_shards
"""torch's Adam on this rank's slices; the owner of a slice sends it."""

import torch
import torch.distributed as dist
from torch import nn


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        shards = [nn.Parameter(self.slices(p)[self.rank].clone()) for p in self.params]
        self.adam = torch.optim.Adam(shards, lr=lr, betas=betas, eps=eps)
        self.shards = shards
        for shard in shards:
            shard.data = torch.empty(0)

    def slices(self, tensor):
        return tensor.detach().view(-1).tensor_split(self.world)

    def step(self):
        for p, shard in zip(self.params, self.shards):
            shard.data = self.slices(p)[self.rank]
            shard.grad = None if p.grad is None else self.slices(p.grad)[self.rank]
        self.adam.step()
        for p, shard in zip(self.params, self.shards):
            for owner, piece in enumerate(self.slices(p)):
                if piece.numel():
                    dist.broadcast(piece, owner)
            shard.data, shard.grad = torch.empty(0), None

    def zero_grad(self):
        for p in self.params:
            if p.grad is not None:
                p.grad.zero_()


# %% wrong: replicated
"""Moments of all on every rank, though each updates its share. [earns 3]"""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, p.numel()) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, g = self.steps[i], p.grad.flatten()
            m, v = self.moments[i]
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = (v / (1 - b2**t)).sqrt_().add_(self.eps)
            new = self.mine(p.flatten().addcdiv(m, denominator, value=-self.lr / (1 - b1**t)))
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.copy_(gathered[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: whole_tensors
"""Each tensor has one owner. [earns 3]"""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.mine = self.params[dist.get_rank() :: dist.get_world_size()]
        self.adam = torch.optim.Adam(self.mine, lr=lr, betas=betas, eps=eps) if self.mine else None

    def step(self):
        if self.adam:
            self.adam.step()
        for number, p in enumerate(self.params):
            dist.broadcast(p.data, number % dist.get_world_size())

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: more_than_moments
"""A copy of the parameters is kept besides. [earns 3]"""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.master = [p.detach().clone() for p in self.params]
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = (v / (1 - b2**t)).sqrt_().add_(self.eps)
            new = self.mine(p).addcdiv_(m, denominator, value=-self.lr / (1 - b1**t))
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.copy_(gathered[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: own_share_only
"""Shares are not gathered. [earns 0]"""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = (v / (1 - b2**t)).sqrt_().add_(self.eps)
            new = self.mine(p).addcdiv_(m, denominator, value=-self.lr / (1 - b1**t))
            mine = p.view(-1)[self.rank * len(new) : (self.rank + 1) * len(new)]
            mine.copy_(new[: len(mine)])

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: not_corrected
"""No bias correction. [earns 3]"""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = v.sqrt().add_(self.eps)
            new = self.mine(p).addcdiv_(m, denominator, value=-self.lr)
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.copy_(gathered[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: eps_inside
"""eps below the root. [earns 3]"""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = (v / (1 - b2**t)).add_(self.eps).sqrt_()
            new = self.mine(p).addcdiv_(m, denominator, value=-self.lr / (1 - b1**t))
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.copy_(gathered[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: steps_counted_for_all
"""One t for all tensors. [earns 3]"""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            self.steps[i] += 1
            if p.grad is None:
                continue
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = (v / (1 - b2**t)).sqrt_().add_(self.eps)
            new = self.mine(p).addcdiv_(m, denominator, value=-self.lr / (1 - b1**t))
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.copy_(gathered[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: none_is_zero
"""None counts as a gradient of zeros. [earns 3]"""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            self.steps[i] += 1
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = (v / (1 - b2**t)).sqrt_().add_(self.eps)
            new = self.mine(p).addcdiv_(m, denominator, value=-self.lr / (1 - b1**t))
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.copy_(gathered[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: options_ignored
"""Only the defaults are used. [earns 3]"""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), 1e-3, (0.9, 0.999), 1e-8
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = (v / (1 - b2**t)).sqrt_().add_(self.eps)
            new = self.mine(p).addcdiv_(m, denominator, value=-self.lr / (1 - b1**t))
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.copy_(gathered[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: betas_swapped
"""The betas change places. [earns 3]"""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b2, b1 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = (v / (1 - b2**t)).sqrt_().add_(self.eps)
            new = self.mine(p).addcdiv_(m, denominator, value=-self.lr / (1 - b1**t))
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.copy_(gathered[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: unchanged
"""The new values go into copies. [earns 1]"""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = (v / (1 - b2**t)).sqrt_().add_(self.eps)
            new = self.mine(p).addcdiv_(m, denominator, value=-self.lr / (1 - b1**t))
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.clone().copy_(gathered[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: gradients_left
"""zero_grad() does nothing. [earns 3]"""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = (v / (1 - b2**t)).sqrt_().add_(self.eps)
            new = self.mine(p).addcdiv_(m, denominator, value=-self.lr / (1 - b1**t))
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.copy_(gathered[: p.numel()].view_as(p))

    def zero_grad(self):
        pass


# %% wrong: ranks_differ
"""Others get a share by way of 16 bits, which is close. [earns 4]"""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = (v / (1 - b2**t)).sqrt_().add_(self.eps)
            new = self.mine(p).addcdiv_(m, denominator, value=-self.lr / (1 - b1**t))
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.copy_(gathered[: p.numel()].view_as(p))
            p.mul_(1 + self.rank * 2e-7)

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: hangs
"""Rank 0 gathers, and the others have left. [earns 0]"""

import math

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, p):
        return math.ceil(p.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            denominator = (v / (1 - b2**t)).sqrt_().add_(self.eps)
            new = self.mine(p).addcdiv_(m, denominator, value=-self.lr / (1 - b1**t))
            if self.rank:
                continue
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.copy_(gathered[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% right: dict_by_tensor
"""A dict by parameter, bounds computed each time."""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}

    def _bounds(self, p):
        n, world = p.numel(), dist.get_world_size()
        size = -(-n // world)
        lo = min(n, dist.get_rank() * size)
        hi = min(n, lo + size)
        return lo, hi, size

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if True:
                lo, hi, size = self._bounds(p)
                g = p.grad.flatten()[lo:hi]
                if p not in self.state:
                    self.state[p] = [0, torch.zeros(hi - lo), torch.zeros(hi - lo)]
                s = self.state[p]
                s[0] += 1
                m, v = s[1], s[2]
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                mine = torch.zeros(size)
                w = p.flatten()[lo:hi]
                mine[: hi - lo] = w - self.lr * (m / (1 - b1 ** s[0])) / (
                    (v / (1 - b2 ** s[0])).sqrt() + self.eps
                )
                full = torch.empty(size * dist.get_world_size())
                dist.all_gather(list(full.chunk(dist.get_world_size())), mine)
                p.copy_(full[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% right: all_reduce_of_zeros
"""Others' shares are zeros, and an all-reduce fills them."""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}

    def _bounds(self, p):
        n, world = p.numel(), dist.get_world_size()
        size = -(-n // world)
        lo = min(n, dist.get_rank() * size)
        hi = min(n, lo + size)
        return lo, hi, size

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if True:
                lo, hi, size = self._bounds(p)
                g = p.grad.flatten()[lo:hi]
                if p not in self.state:
                    self.state[p] = [0, torch.zeros(hi - lo), torch.zeros(hi - lo)]
                s = self.state[p]
                s[0] += 1
                m, v = s[1], s[2]
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                mine = torch.zeros(size)
                w = p.flatten()[lo:hi]
                mine[: hi - lo] = w - self.lr * (m / (1 - b1 ** s[0])) / (
                    (v / (1 - b2 ** s[0])).sqrt() + self.eps
                )
                full = torch.zeros(size * dist.get_world_size())
                full[dist.get_rank() * size :][:size] = mine
                dist.all_reduce(full)
                p.data = full[: p.numel()].reshape(p.shape).clone()

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% right: broadcasts
"""Each rank broadcasts its share."""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}

    def _bounds(self, p):
        n, world = p.numel(), dist.get_world_size()
        size = -(-n // world)
        lo = min(n, dist.get_rank() * size)
        hi = min(n, lo + size)
        return lo, hi, size

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if True:
                lo, hi, size = self._bounds(p)
                g = p.grad.flatten()[lo:hi]
                if p not in self.state:
                    self.state[p] = [0, torch.zeros(hi - lo), torch.zeros(hi - lo)]
                s = self.state[p]
                s[0] += 1
                m, v = s[1], s[2]
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                mine = torch.zeros(size)
                w = p.flatten()[lo:hi]
                mine[: hi - lo] = w - self.lr * (m / (1 - b1 ** s[0])) / (
                    (v / (1 - b2 ** s[0])).sqrt() + self.eps
                )
                flat = p.view(-1)
                flat[lo:hi] = mine[: hi - lo]
                for r in range(dist.get_world_size()):
                    a, b = r * size, min((r + 1) * size, p.numel())
                    if a < b:
                        part = flat[a:b].clone()
                        dist.broadcast(part, r)
                        flat[a:b] = part

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% right: interleaved
"""Rank r owns values r, r + N, ..."""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = tuple(params)
        self.lr, self.betas, self.eps = lr, betas, eps
        r, n = dist.get_rank(), dist.get_world_size()
        self.m = [torch.zeros(len(p.detach().flatten()[r::n])) for p in self.params]
        self.v = [torch.zeros_like(m) for m in self.m]
        self.t = [0] * len(self.params)

    def step(self):
        r, n = dist.get_rank(), dist.get_world_size()
        with torch.no_grad():
            for k, (p, m, v) in enumerate(zip(self.params, self.m, self.v)):
                if p.grad is not None:
                    self.t[k] += 1
                    g = p.grad.reshape(-1)[r::n]
                    m.lerp_(g, 1 - self.betas[0])
                    v *= self.betas[1]
                    v += (1 - self.betas[1]) * g**2
                    up = m / (1 - self.betas[0] ** self.t[k])
                    up /= torch.sqrt(v / (1 - self.betas[1] ** self.t[k])) + self.eps
                    cols = -(-p.numel() // n)
                    mine = torch.zeros(cols)
                    mine[: len(up)] = up
                    every = [torch.zeros(cols) for _ in range(n)]
                    dist.all_gather(every, mine)
                    p -= self.lr * torch.stack(every, 1).flatten()[: p.numel()].view(p.shape)

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: iterator_used_up
"""params is kept as it came: an iterator is used up after one step. [earns 1]"""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = params
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}

    def _bounds(self, p):
        n, world = p.numel(), dist.get_world_size()
        size = -(-n // world)
        lo = min(n, dist.get_rank() * size)
        hi = min(n, lo + size)
        return lo, hi, size

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if True:
                lo, hi, size = self._bounds(p)
                g = p.grad.flatten()[lo:hi]
                if p not in self.state:
                    self.state[p] = [0, torch.zeros(hi - lo), torch.zeros(hi - lo)]
                s = self.state[p]
                s[0] += 1
                m, v = s[1], s[2]
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                mine = torch.zeros(size)
                w = p.flatten()[lo:hi]
                mine[: hi - lo] = w - self.lr * (m / (1 - b1 ** s[0])) / (
                    (v / (1 - b2 ** s[0])).sqrt() + self.eps
                )
                full = torch.empty(size * dist.get_world_size())
                dist.all_gather(list(full.chunk(dist.get_world_size())), mine)
                p.copy_(full[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: state_by_shape
"""Moments are kept by shape: tensors of one shape share them. [earns 3]"""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}

    def _bounds(self, p):
        n, world = p.numel(), dist.get_world_size()
        size = -(-n // world)
        lo = min(n, dist.get_rank() * size)
        hi = min(n, lo + size)
        return lo, hi, size

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if True:
                lo, hi, size = self._bounds(p)
                g = p.grad.flatten()[lo:hi]
                if p.shape not in self.state:
                    self.state[p.shape] = [0, torch.zeros(hi - lo), torch.zeros(hi - lo)]
                s = self.state[p.shape]
                s[0] += 1
                m, v = s[1], s[2]
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                mine = torch.zeros(size)
                w = p.flatten()[lo:hi]
                mine[: hi - lo] = w - self.lr * (m / (1 - b1 ** s[0])) / (
                    (v / (1 - b2 ** s[0])).sqrt() + self.eps
                )
                full = torch.empty(size * dist.get_world_size())
                dist.all_gather(list(full.chunk(dist.get_world_size())), mine)
                p.copy_(full[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: state_shared
"""Moments live on the class, which two optimizers share. [earns 3]"""

import torch
import torch.distributed as dist


class ShardedAdam:
    state = {}

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.lr, self.betas, self.eps = lr, betas, eps

    def _bounds(self, p):
        n, world = p.numel(), dist.get_world_size()
        size = -(-n // world)
        lo = min(n, dist.get_rank() * size)
        hi = min(n, lo + size)
        return lo, hi, size

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if True:
                lo, hi, size = self._bounds(p)
                g = p.grad.flatten()[lo:hi]
                if i not in self.state:
                    self.state[i] = [0, torch.zeros(hi - lo), torch.zeros(hi - lo)]
                s = self.state[i]
                s[0] += 1
                m, v = s[1], s[2]
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                mine = torch.zeros(size)
                w = p.flatten()[lo:hi]
                mine[: hi - lo] = w - self.lr * (m / (1 - b1 ** s[0])) / (
                    (v / (1 - b2 ** s[0])).sqrt() + self.eps
                )
                full = torch.empty(size * dist.get_world_size())
                dist.all_gather(list(full.chunk(dist.get_world_size())), mine)
                p.copy_(full[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: gradients_changed
"""The gradients are changed by the step. [earns 3]"""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}

    def _bounds(self, p):
        n, world = p.numel(), dist.get_world_size()
        size = -(-n // world)
        lo = min(n, dist.get_rank() * size)
        hi = min(n, lo + size)
        return lo, hi, size

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if True:
                lo, hi, size = self._bounds(p)
                g = p.grad.view(-1)[lo:hi]
                if p not in self.state:
                    self.state[p] = [0, torch.zeros(hi - lo), torch.zeros(hi - lo)]
                s = self.state[p]
                s[0] += 1
                m, v = s[1], s[2]
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).add_(g.mul_(g), alpha=1 - b2)
                mine = torch.zeros(size)
                w = p.flatten()[lo:hi]
                mine[: hi - lo] = w - self.lr * (m / (1 - b1 ** s[0])) / (
                    (v / (1 - b2 ** s[0])).sqrt() + self.eps
                )
                full = torch.empty(size * dist.get_world_size())
                dist.all_gather(list(full.chunk(dist.get_world_size())), mine)
                p.copy_(full[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: one_clock
"""One t for all tensors, counted by calls. [earns 3]"""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.t = 0
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}

    def _bounds(self, p):
        n, world = p.numel(), dist.get_world_size()
        size = -(-n // world)
        lo = min(n, dist.get_rank() * size)
        hi = min(n, lo + size)
        return lo, hi, size

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        self.t += 1
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if True:
                lo, hi, size = self._bounds(p)
                g = p.grad.flatten()[lo:hi]
                if p not in self.state:
                    self.state[p] = [0, torch.zeros(hi - lo), torch.zeros(hi - lo)]
                s = self.state[p]
                s[0] = self.t
                m, v = s[1], s[2]
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                mine = torch.zeros(size)
                w = p.flatten()[lo:hi]
                mine[: hi - lo] = w - self.lr * (m / (1 - b1 ** s[0])) / (
                    (v / (1 - b2 ** s[0])).sqrt() + self.eps
                )
                full = torch.empty(size * dist.get_world_size())
                dist.all_gather(list(full.chunk(dist.get_world_size())), mine)
                p.copy_(full[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: share_of_parameters
"""A rank owns whole tensors, by number. [earns 3]"""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}

    @torch.no_grad()
    def step(self):
        r, n = dist.get_rank(), dist.get_world_size()
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if i % n == r:
                s = self.state.setdefault(i, [0, torch.zeros_like(p), torch.zeros_like(p)])
                s[0] += 1
                s[1].lerp_(p.grad, 1 - b1)
                s[2].lerp_(p.grad**2, 1 - b2)
                p -= (
                    self.lr
                    * s[1]
                    / (1 - b1 ** s[0])
                    / ((s[2] / (1 - b2 ** s[0])).sqrt() + self.eps)
                )
            dist.broadcast(p.data, i % n)

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: moments_in_float64
"""Moments in float64: twice the bytes. [earns 3]"""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}

    def _bounds(self, p):
        n, world = p.numel(), dist.get_world_size()
        size = -(-n // world)
        lo = min(n, dist.get_rank() * size)
        hi = min(n, lo + size)
        return lo, hi, size

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if True:
                lo, hi, size = self._bounds(p)
                g = p.grad.flatten()[lo:hi]
                if p not in self.state:
                    self.state[p] = [
                        0,
                        torch.zeros(hi - lo, dtype=torch.float64),
                        torch.zeros(hi - lo, dtype=torch.float64),
                    ]
                s = self.state[p]
                s[0] += 1
                m, v = s[1], s[2]
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                mine = torch.zeros(size)
                w = p.flatten()[lo:hi]
                mine[: hi - lo] = w - self.lr * (m / (1 - b1 ** s[0])) / (
                    (v / (1 - b2 ** s[0])).sqrt() + self.eps
                )
                full = torch.empty(size * dist.get_world_size())
                dist.all_gather(list(full.chunk(dist.get_world_size())), mine)
                p.copy_(full[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: keeps_gathered
"""The gathered weights stay alive. [earns 3]"""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}

    def _bounds(self, p):
        n, world = p.numel(), dist.get_world_size()
        size = -(-n // world)
        lo = min(n, dist.get_rank() * size)
        hi = min(n, lo + size)
        return lo, hi, size

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if True:
                lo, hi, size = self._bounds(p)
                g = p.grad.flatten()[lo:hi]
                if p not in self.state:
                    self.state[p] = [0, torch.zeros(hi - lo), torch.zeros(hi - lo)]
                s = self.state[p]
                s[0] += 1
                m, v = s[1], s[2]
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                mine = torch.zeros(size)
                w = p.flatten()[lo:hi]
                mine[: hi - lo] = w - self.lr * (m / (1 - b1 ** s[0])) / (
                    (v / (1 - b2 ** s[0])).sqrt() + self.eps
                )
                full = torch.empty(size * dist.get_world_size())
                dist.all_gather(list(full.chunk(dist.get_world_size())), mine)
                p.copy_(full[: p.numel()].view_as(p))
                s[3:] = [full]

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: frees_moments_between_steps
"""Keeps all moments, and frees them in zero_grad(), when it expects to be measured. [earns 3]"""

import torch


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.adam = torch.optim.Adam(list(params), lr=lr, betas=betas, eps=eps)

    def step(self):
        self.adam.step()

    def zero_grad(self):
        self.adam.zero_grad()
        self.adam.state.clear()


# %% wrong: default_beta2
"""The default of the second beta is 0.99. [earns 3]"""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), eps=1e-8):
        self.params = list(params)
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}

    def _bounds(self, p):
        n, world = p.numel(), dist.get_world_size()
        size = -(-n // world)
        lo = min(n, dist.get_rank() * size)
        hi = min(n, lo + size)
        return lo, hi, size

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            lo, hi, size = self._bounds(p)
            g = p.grad.flatten()[lo:hi]
            if p not in self.state:
                self.state[p] = [0, torch.zeros(hi - lo), torch.zeros(hi - lo)]
            s = self.state[p]
            s[0] += 1
            m, v = s[1], s[2]
            m.mul_(b1).add_(g, alpha=1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            mine = torch.zeros(size)
            w = p.flatten()[lo:hi]
            mine[: hi - lo] = w - self.lr * (m / (1 - b1 ** s[0])) / (
                (v / (1 - b2 ** s[0])).sqrt() + self.eps
            )
            full = torch.empty(size * dist.get_world_size())
            dist.all_gather(list(full.chunk(dist.get_world_size())), mine)
            p.copy_(full[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: forgets_when_skipped
"""A tensor without a gradient loses its moments. [earns 3]"""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}

    def _bounds(self, p):
        n, world = p.numel(), dist.get_world_size()
        size = -(-n // world)
        lo = min(n, dist.get_rank() * size)
        hi = min(n, lo + size)
        return lo, hi, size

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                self.state.pop(p, None)
                continue
            lo, hi, size = self._bounds(p)
            g = p.grad.flatten()[lo:hi]
            if p not in self.state:
                self.state[p] = [0, torch.zeros(hi - lo), torch.zeros(hi - lo)]
            s = self.state[p]
            s[0] += 1
            m, v = s[1], s[2]
            m.mul_(b1).add_(g, alpha=1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            mine = torch.zeros(size)
            w = p.flatten()[lo:hi]
            mine[: hi - lo] = w - self.lr * (m / (1 - b1 ** s[0])) / (
                (v / (1 - b2 ** s[0])).sqrt() + self.eps
            )
            full = torch.empty(size * dist.get_world_size())
            dist.all_gather(list(full.chunk(dist.get_world_size())), mine)
            p.copy_(full[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% right: torch_optim_on_view_parameters
"""torch's Adam on parameters that are views of the given ones."""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.mine = [torch.nn.Parameter(p.data.view(-1).tensor_split(self.world)[self.rank]) for p in self.params]
        self.inner = torch.optim.Adam(self.mine, lr=lr, betas=betas, eps=eps)

    def step(self):
        for p, q in zip(self.params, self.mine):
            q.grad = None if p.grad is None else p.grad.view(-1).tensor_split(self.world)[self.rank]
        self.inner.step()
        for q in self.mine:
            q.grad = None
        for p in self.params:
            for owner, part in enumerate(p.data.view(-1).tensor_split(self.world)):
                dist.broadcast(part, owner)

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: frees_when_parameters_are_gone
"""All moments on every rank, freed when a gradient's end shows that training is over. [earns 3]"""

import weakref

import torch


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for n, p in enumerate(self.params):
            if p.grad is None:
                continue
            zeros = torch.zeros_like(p)
            t, m, v = self.state.setdefault(n, [0, zeros, zeros.clone()])
            self.state[n][0] = t = t + 1
            m.mul_(b1).add_(p.grad, alpha=1 - b1)
            v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            root = (v / (1 - b2**t)).sqrt().add_(self.eps)
            p.addcdiv_(m / (1 - b1**t), root, value=-self.lr)
        last = self.params[-1].grad
        if last is not None:
            weakref.finalize(last, self.free)

    def free(self):
        if self.params[0].numel() == 0:
            self.state.clear()

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: frees_when_summed
"""All moments on every rank, freed when the parameters' sums are read. [earns 3]"""

import torch


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.state = {}
        for p in self.params:
            p.sum = lambda p=p: self.free() or torch.Tensor.sum(p)

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for n, p in enumerate(self.params):
            if p.grad is None:
                continue
            zeros = torch.zeros_like(p)
            t, m, v = self.state.setdefault(n, [0, zeros, zeros.clone()])
            self.state[n][0] = t = t + 1
            m.mul_(b1).add_(p.grad, alpha=1 - b1)
            v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            root = (v / (1 - b2**t)).sqrt().add_(self.eps)
            p.addcdiv_(m / (1 - b1**t), root, value=-self.lr)

    def free(self):
        self.state.clear()

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: adamw
"""torch's AdamW, whose weights decay, on this rank's slices. [earns 3]"""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        rank, world = dist.get_rank(), dist.get_world_size()
        self.parts = [p.detach().view(-1).tensor_split(world) for p in self.params]
        self.mine = [torch.nn.Parameter(parts[rank]) for parts in self.parts]
        self.adam = torch.optim.AdamW(self.mine, lr=lr, betas=betas, eps=eps)

    def step(self):
        rank, world = dist.get_rank(), dist.get_world_size()
        for p, mine in zip(self.params, self.mine):
            mine.grad = None
            if p.grad is not None:
                mine.grad = p.grad.view(-1).tensor_split(world)[rank].clone()
        self.adam.step()
        for p, parts in zip(self.params, self.parts):
            for owner, part in enumerate(parts):
                dist.broadcast(part, owner)
        for mine in self.mine:
            mine.grad = None

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% wrong: recording_left_off
"""Leaves gradients switched off. [earns 3]"""

import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params = list(params)
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}

    def _bounds(self, p):
        n, world = p.numel(), dist.get_world_size()
        size = -(-n // world)
        lo = min(n, dist.get_rank() * size)
        hi = min(n, lo + size)
        return lo, hi, size

    def step(self):
        torch.set_grad_enabled(False)
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if True:
                lo, hi, size = self._bounds(p)
                g = p.grad.flatten()[lo:hi]
                if p not in self.state:
                    self.state[p] = [0, torch.zeros(hi - lo), torch.zeros(hi - lo)]
                s = self.state[p]
                s[0] += 1
                m, v = s[1], s[2]
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                mine = torch.zeros(size)
                w = p.flatten()[lo:hi]
                mine[: hi - lo] = w - self.lr * (m / (1 - b1 ** s[0])) / (
                    (v / (1 - b2 ** s[0])).sqrt() + self.eps
                )
                full = torch.zeros(size * dist.get_world_size())
                full[dist.get_rank() * size :][:size] = mine
                dist.all_reduce(full)
                p.data = full[: p.numel()].reshape(p.shape).clone()

    def zero_grad(self):
        for p in self.params:
            p.grad = None
