# %% right: gathered_again
"""Gathered in forward and in backward, by one autograd Function."""

import math

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        made = {layer: ShardedLayer(layer) for layer in dict.fromkeys(layers)}
        self.layers = nn.ModuleList(made[layer] for layer in layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class ShardedLayer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.shapes = {name: p.shape for name, p in layer.named_parameters()}
        self.run = [layer]  # in a list: its parameters aren't this module's
        if self.shapes:
            self.shard = nn.Parameter(chunks(list(layer.parameters()))[dist.get_rank()].clone())
            for p in layer.parameters():
                p.data = torch.empty(0)

    def forward(self, x):
        return Gathered.apply(x, self.shard, self) if self.shapes else self.run[0](x)

    def views(self, flat):
        parts = flat[: sum(map(math.prod, self.shapes.values()))].split(
            [math.prod(shape) for shape in self.shapes.values()]
        )
        return {n: p.view(s) for (n, s), p in zip(self.shapes.items(), parts)}


def chunks(tensors):
    """All values of some tensors, padded with zeros, in equal chunks, one per rank."""
    world, n = dist.get_world_size(), sum(t.numel() for t in tensors)
    padding = tensors[0].new_zeros(-n % world)
    return torch.cat([*(t.detach().flatten() for t in tensors), padding]).chunk(world)


def gather(shard):
    flat = shard.new_empty(dist.get_world_size() * len(shard))
    dist.all_gather(list(flat.split(len(shard))), shard.detach())
    return flat


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, layer):
        ctx.layer = layer
        ctx.save_for_backward(x, shard)
        return functional_call(layer.run[0], layer.views(gather(shard)), (x,))

    @staticmethod
    def backward(ctx, gradient):
        x, shard = ctx.saved_tensors
        layer = ctx.layer
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            weights = {n: w.requires_grad_() for n, w in layer.views(gather(shard)).items()}
            output = functional_call(layer.run[0], weights, (x,))
        of_x, *of_weights = torch.autograd.grad(output, (x, *weights.values()), gradient)
        del weights, output
        parts = chunks(of_weights)
        del of_weights
        for owner, part in enumerate(parts):
            dist.reduce(part, owner)
        return of_x, parts[dist.get_rank()] / dist.get_world_size(), None


# %% right: own_class_by_list
"""No torch module: parameters() is a method; gradients by all_reduce."""

import torch
import torch.distributed as dist
from torch import nn


def cut(flat):
    world = dist.get_world_size()
    size = -(-flat.numel() // world)
    padded = torch.zeros(world * size, dtype=flat.dtype)
    padded[: flat.numel()] = flat
    return padded.chunk(world)


class Use(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, unit):
        ctx.unit = unit
        ctx.save_for_backward(x, shard)
        unit.fill(shard)
        output = unit.layer(x)
        unit.empty()
        return output

    @staticmethod
    def backward(ctx, gradient):
        unit = ctx.unit
        x, shard = ctx.saved_tensors
        unit.fill(shard)
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            output = unit.layer(x)
        output.backward(gradient)
        unit.empty()
        flat = torch.cat([p.grad.flatten() for p in unit.params])
        for p in unit.params:
            p.grad = None
        dist.all_reduce(flat)
        return x.grad, cut(flat)[dist.get_rank()] / dist.get_world_size(), None


class Unit:
    def __init__(self, layer):
        self.layer, self.params = layer, list(layer.parameters())
        self.shapes = [p.shape for p in self.params]
        flat = torch.cat([p.data.flatten() for p in self.params])
        self.shard = nn.Parameter(cut(flat)[dist.get_rank()].clone())
        self.empty()

    def fill(self, shard):
        flat = torch.empty(len(shard) * dist.get_world_size())
        dist.all_gather(list(flat.split(len(shard))), shard.detach())
        start = 0
        for p, shape in zip(self.params, self.shapes):
            p.data = flat[start : start + shape.numel()].view(shape)
            start += shape.numel()

    def empty(self):
        for p in self.params:
            p.data = torch.empty(0)


class ShardedLayers:
    def __init__(self, layers):
        units = {}
        for layer in layers:
            if layer not in units and any(True for _ in layer.parameters()):
                units[layer] = Unit(layer)
        self.steps = [units.get(layer, layer) for layer in layers]
        self.units = list(units.values())

    def parameters(self):
        return [unit.shard for unit in self.units]

    def __call__(self, x):
        for step in self.steps:
            x = Use.apply(x, step.shard, step) if isinstance(step, Unit) else step(x)
        return x


# %% right: by_broadcasts
"""Each rank sends its chunk in turn; one all_reduce of the gradient."""

import math

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        made = {layer: ShardedLayer(layer) for layer in dict.fromkeys(layers)}
        self.layers = nn.ModuleList(made[layer] for layer in layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class ShardedLayer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.shapes = {name: p.shape for name, p in layer.named_parameters()}
        self.run = [layer]  # in a list: its parameters aren't this module's
        if self.shapes:
            self.shard = nn.Parameter(chunks(list(layer.parameters()))[dist.get_rank()].clone())
            for p in layer.parameters():
                p.data = torch.empty(0)

    def forward(self, x):
        return Gathered.apply(x, self.shard, self) if self.shapes else self.run[0](x)

    def views(self, flat):
        parts = flat[: sum(map(math.prod, self.shapes.values()))].split(
            [math.prod(shape) for shape in self.shapes.values()]
        )
        return {n: p.view(s) for (n, s), p in zip(self.shapes.items(), parts)}


def chunks(tensors):
    """All values of some tensors, padded with zeros, in equal chunks, one per rank."""
    world, n = dist.get_world_size(), sum(t.numel() for t in tensors)
    padding = tensors[0].new_zeros(-n % world)
    return torch.cat([*(t.detach().flatten() for t in tensors), padding]).chunk(world)


def gather(shard):
    flat = shard.new_zeros(dist.get_world_size(), len(shard))
    flat[dist.get_rank()] = shard.detach()
    for owner, row in enumerate(flat):
        dist.broadcast(row, owner)
    return flat.flatten()


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, layer):
        ctx.layer = layer
        ctx.save_for_backward(x, shard)
        return functional_call(layer.run[0], layer.views(gather(shard)), (x,))

    @staticmethod
    def backward(ctx, gradient):
        x, shard = ctx.saved_tensors
        layer = ctx.layer
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            weights = {n: w.requires_grad_() for n, w in layer.views(gather(shard)).items()}
            output = functional_call(layer.run[0], weights, (x,))
        of_x, *of_weights = torch.autograd.grad(output, (x, *weights.values()), gradient)
        del weights, output
        flat = torch.cat([g.flatten() for g in of_weights])
        del of_weights
        dist.all_reduce(flat)
        mine = chunks([flat])[dist.get_rank()] / dist.get_world_size()
        return of_x, mine, None


# %% wrong: sums
"""Not divided. [earns 0]"""

import math

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        made = {layer: ShardedLayer(layer) for layer in dict.fromkeys(layers)}
        self.layers = nn.ModuleList(made[layer] for layer in layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class ShardedLayer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.shapes = {name: p.shape for name, p in layer.named_parameters()}
        self.run = [layer]  # in a list: its parameters aren't this module's
        if self.shapes:
            self.shard = nn.Parameter(chunks(list(layer.parameters()))[dist.get_rank()].clone())
            for p in layer.parameters():
                p.data = torch.empty(0)

    def forward(self, x):
        return Gathered.apply(x, self.shard, self) if self.shapes else self.run[0](x)

    def views(self, flat):
        parts = flat[: sum(map(math.prod, self.shapes.values()))].split(
            [math.prod(shape) for shape in self.shapes.values()]
        )
        return {n: p.view(s) for (n, s), p in zip(self.shapes.items(), parts)}


def chunks(tensors):
    """All values of some tensors, padded with zeros, in equal chunks, one per rank."""
    world, n = dist.get_world_size(), sum(t.numel() for t in tensors)
    padding = tensors[0].new_zeros(-n % world)
    return torch.cat([*(t.detach().flatten() for t in tensors), padding]).chunk(world)


def gather(shard):
    flat = shard.new_empty(dist.get_world_size() * len(shard))
    dist.all_gather(list(flat.split(len(shard))), shard.detach())
    return flat


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, layer):
        ctx.layer = layer
        ctx.save_for_backward(x, shard)
        return functional_call(layer.run[0], layer.views(gather(shard)), (x,))

    @staticmethod
    def backward(ctx, gradient):
        x, shard = ctx.saved_tensors
        layer = ctx.layer
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            weights = {n: w.requires_grad_() for n, w in layer.views(gather(shard)).items()}
            output = functional_call(layer.run[0], weights, (x,))
        of_x, *of_weights = torch.autograd.grad(output, (x, *weights.values()), gradient)
        del weights, output
        parts = chunks(of_weights)
        del of_weights
        for owner, part in enumerate(parts):
            dist.reduce(part, owner)
        return of_x, parts[dist.get_rank()].clone(), None


# %% wrong: nothing_reduced
"""Nothing is reduced. [earns 0]"""

import math

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        made = {layer: ShardedLayer(layer) for layer in dict.fromkeys(layers)}
        self.layers = nn.ModuleList(made[layer] for layer in layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class ShardedLayer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.shapes = {name: p.shape for name, p in layer.named_parameters()}
        self.run = [layer]  # in a list: its parameters aren't this module's
        if self.shapes:
            self.shard = nn.Parameter(chunks(list(layer.parameters()))[dist.get_rank()].clone())
            for p in layer.parameters():
                p.data = torch.empty(0)

    def forward(self, x):
        return Gathered.apply(x, self.shard, self) if self.shapes else self.run[0](x)

    def views(self, flat):
        parts = flat[: sum(map(math.prod, self.shapes.values()))].split(
            [math.prod(shape) for shape in self.shapes.values()]
        )
        return {n: p.view(s) for (n, s), p in zip(self.shapes.items(), parts)}


def chunks(tensors):
    """All values of some tensors, padded with zeros, in equal chunks, one per rank."""
    world, n = dist.get_world_size(), sum(t.numel() for t in tensors)
    padding = tensors[0].new_zeros(-n % world)
    return torch.cat([*(t.detach().flatten() for t in tensors), padding]).chunk(world)


def gather(shard):
    flat = shard.new_empty(dist.get_world_size() * len(shard))
    dist.all_gather(list(flat.split(len(shard))), shard.detach())
    return flat


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, layer):
        ctx.layer = layer
        ctx.save_for_backward(x, shard)
        return functional_call(layer.run[0], layer.views(gather(shard)), (x,))

    @staticmethod
    def backward(ctx, gradient):
        x, shard = ctx.saved_tensors
        layer = ctx.layer
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            weights = {n: w.requires_grad_() for n, w in layer.views(gather(shard)).items()}
            output = functional_call(layer.run[0], weights, (x,))
        of_x, *of_weights = torch.autograd.grad(output, (x, *weights.values()), gradient)
        del weights, output
        parts = chunks(of_weights)
        del of_weights
        return of_x, parts[dist.get_rank()].clone(), None


# %% wrong: no_update
"""The gradient is lost. [earns 0]"""

import math

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        made = {layer: ShardedLayer(layer) for layer in dict.fromkeys(layers)}
        self.layers = nn.ModuleList(made[layer] for layer in layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class ShardedLayer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.shapes = {name: p.shape for name, p in layer.named_parameters()}
        self.run = [layer]  # in a list: its parameters aren't this module's
        if self.shapes:
            self.shard = nn.Parameter(chunks(list(layer.parameters()))[dist.get_rank()].clone())
            for p in layer.parameters():
                p.data = torch.empty(0)

    def forward(self, x):
        return Gathered.apply(x, self.shard, self) if self.shapes else self.run[0](x)

    def views(self, flat):
        parts = flat[: sum(map(math.prod, self.shapes.values()))].split(
            [math.prod(shape) for shape in self.shapes.values()]
        )
        return {n: p.view(s) for (n, s), p in zip(self.shapes.items(), parts)}


def chunks(tensors):
    """All values of some tensors, padded with zeros, in equal chunks, one per rank."""
    world, n = dist.get_world_size(), sum(t.numel() for t in tensors)
    padding = tensors[0].new_zeros(-n % world)
    return torch.cat([*(t.detach().flatten() for t in tensors), padding]).chunk(world)


def gather(shard):
    flat = shard.new_empty(dist.get_world_size() * len(shard))
    dist.all_gather(list(flat.split(len(shard))), shard.detach())
    return flat


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, layer):
        ctx.layer = layer
        ctx.save_for_backward(x, shard)
        return functional_call(layer.run[0], layer.views(gather(shard)), (x,))

    @staticmethod
    def backward(ctx, gradient):
        x, shard = ctx.saved_tensors
        layer = ctx.layer
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            weights = {n: w.requires_grad_() for n, w in layer.views(gather(shard)).items()}
            output = functional_call(layer.run[0], weights, (x,))
        of_x, *of_weights = torch.autograd.grad(output, (x, *weights.values()), gradient)
        del weights, output
        parts = chunks(of_weights)
        del of_weights
        for owner, part in enumerate(parts):
            dist.reduce(part, owner)
        return of_x, None, None


# %% wrong: two_copies
"""Each use has a shard of its own. [earns 3]"""

import copy
import math

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList()
        for number, layer in enumerate(layers):
            comes_again = layer in layers[number + 1 :]
            self.layers.append(ShardedLayer(copy.deepcopy(layer) if comes_again else layer))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class ShardedLayer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.shapes = {name: p.shape for name, p in layer.named_parameters()}
        self.run = [layer]  # in a list: its parameters aren't this module's
        if self.shapes:
            self.shard = nn.Parameter(chunks(list(layer.parameters()))[dist.get_rank()].clone())
            for p in layer.parameters():
                p.data = torch.empty(0)

    def forward(self, x):
        return Gathered.apply(x, self.shard, self) if self.shapes else self.run[0](x)

    def views(self, flat):
        parts = flat[: sum(map(math.prod, self.shapes.values()))].split(
            [math.prod(shape) for shape in self.shapes.values()]
        )
        return {n: p.view(s) for (n, s), p in zip(self.shapes.items(), parts)}


def chunks(tensors):
    """All values of some tensors, padded with zeros, in equal chunks, one per rank."""
    world, n = dist.get_world_size(), sum(t.numel() for t in tensors)
    padding = tensors[0].new_zeros(-n % world)
    return torch.cat([*(t.detach().flatten() for t in tensors), padding]).chunk(world)


def gather(shard):
    flat = shard.new_empty(dist.get_world_size() * len(shard))
    dist.all_gather(list(flat.split(len(shard))), shard.detach())
    return flat


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, layer):
        ctx.layer = layer
        ctx.save_for_backward(x, shard)
        return functional_call(layer.run[0], layer.views(gather(shard)), (x,))

    @staticmethod
    def backward(ctx, gradient):
        x, shard = ctx.saved_tensors
        layer = ctx.layer
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            weights = {n: w.requires_grad_() for n, w in layer.views(gather(shard)).items()}
            output = functional_call(layer.run[0], weights, (x,))
        of_x, *of_weights = torch.autograd.grad(output, (x, *weights.values()), gradient)
        del weights, output
        parts = chunks(of_weights)
        del of_weights
        for owner, part in enumerate(parts):
            dist.reduce(part, owner)
        return of_x, parts[dist.get_rank()] / dist.get_world_size(), None


# %% wrong: layers_stay
"""What was gathered is kept for backward. [earns 4]"""

import math

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        made = {layer: ShardedLayer(layer) for layer in dict.fromkeys(layers)}
        self.layers = nn.ModuleList(made[layer] for layer in layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class ShardedLayer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.shapes = {name: p.shape for name, p in layer.named_parameters()}
        self.run = [layer]  # in a list: its parameters aren't this module's
        if self.shapes:
            self.shard = nn.Parameter(chunks(list(layer.parameters()))[dist.get_rank()].clone())
            for p in layer.parameters():
                p.data = torch.empty(0)

    def forward(self, x):
        return Gathered.apply(x, self.shard, self) if self.shapes else self.run[0](x)

    def views(self, flat):
        parts = flat[: sum(map(math.prod, self.shapes.values()))].split(
            [math.prod(shape) for shape in self.shapes.values()]
        )
        return {n: p.view(s) for (n, s), p in zip(self.shapes.items(), parts)}


def chunks(tensors):
    """All values of some tensors, padded with zeros, in equal chunks, one per rank."""
    world, n = dist.get_world_size(), sum(t.numel() for t in tensors)
    padding = tensors[0].new_zeros(-n % world)
    return torch.cat([*(t.detach().flatten() for t in tensors), padding]).chunk(world)


def gather(shard):
    flat = shard.new_empty(dist.get_world_size() * len(shard))
    dist.all_gather(list(flat.split(len(shard))), shard.detach())
    return flat


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, layer):
        ctx.layer = layer
        ctx.flat = gather(shard)
        ctx.save_for_backward(x, shard)
        return functional_call(layer.run[0], layer.views(ctx.flat), (x,))

    @staticmethod
    def backward(ctx, gradient):
        x, shard = ctx.saved_tensors
        layer = ctx.layer
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            weights = {n: w.requires_grad_() for n, w in layer.views(ctx.flat).items()}
            output = functional_call(layer.run[0], weights, (x,))
        of_x, *of_weights = torch.autograd.grad(output, (x, *weights.values()), gradient)
        del weights, output
        parts = chunks(of_weights)
        del of_weights
        for owner, part in enumerate(parts):
            dist.reduce(part, owner)
        return of_x, parts[dist.get_rank()] / dist.get_world_size(), None


# %% wrong: replicated
"""Nothing is sharded; gradients are averaged. [earns 4]"""

import torch.distributed as dist
from torch import nn


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        for p in self.parameters():
            p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        p.grad /= dist.get_world_size()
        dist.all_reduce(p.grad)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


# %% wrong: sends_too_much
"""All gather all gradients to add them up. [earns 5]"""

import math

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        made = {layer: ShardedLayer(layer) for layer in dict.fromkeys(layers)}
        self.layers = nn.ModuleList(made[layer] for layer in layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class ShardedLayer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.shapes = {name: p.shape for name, p in layer.named_parameters()}
        self.run = [layer]  # in a list: its parameters aren't this module's
        if self.shapes:
            self.shard = nn.Parameter(chunks(list(layer.parameters()))[dist.get_rank()].clone())
            for p in layer.parameters():
                p.data = torch.empty(0)

    def forward(self, x):
        return Gathered.apply(x, self.shard, self) if self.shapes else self.run[0](x)

    def views(self, flat):
        parts = flat[: sum(map(math.prod, self.shapes.values()))].split(
            [math.prod(shape) for shape in self.shapes.values()]
        )
        return {n: p.view(s) for (n, s), p in zip(self.shapes.items(), parts)}


def chunks(tensors):
    """All values of some tensors, padded with zeros, in equal chunks, one per rank."""
    world, n = dist.get_world_size(), sum(t.numel() for t in tensors)
    padding = tensors[0].new_zeros(-n % world)
    return torch.cat([*(t.detach().flatten() for t in tensors), padding]).chunk(world)


def gather(shard):
    flat = shard.new_empty(dist.get_world_size() * len(shard))
    dist.all_gather(list(flat.split(len(shard))), shard.detach())
    return flat


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, layer):
        ctx.layer = layer
        ctx.save_for_backward(x, shard)
        return functional_call(layer.run[0], layer.views(gather(shard)), (x,))

    @staticmethod
    def backward(ctx, gradient):
        x, shard = ctx.saved_tensors
        layer = ctx.layer
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            weights = {n: w.requires_grad_() for n, w in layer.views(gather(shard)).items()}
            output = functional_call(layer.run[0], weights, (x,))
        of_x, *of_weights = torch.autograd.grad(output, (x, *weights.values()), gradient)
        del weights, output
        parts = chunks(of_weights)
        del of_weights
        mine = torch.zeros_like(parts[0])
        for owner in range(dist.get_world_size()):
            flat = (
                torch.cat(parts)
                if owner == dist.get_rank()
                else torch.empty(len(mine) * len(parts))
            )
            dist.broadcast(flat, owner)
            gather(shard)
            mine += flat.chunk(len(parts))[dist.get_rank()]
        return of_x, mine / dist.get_world_size(), None
