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


# %% right: units
"""A plain object for each layer; reductions to each owner."""

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, unit):
        ctx.save_for_backward(x)
        ctx.unit, ctx.shard = unit, shard
        whole = unit.gather(shard)
        with torch.no_grad():
            return functional_call(unit.layer, unit.split(whole), (x,))

    @staticmethod
    def backward(ctx, g):
        unit, shard = ctx.unit, ctx.shard
        x = ctx.saved_tensors[0].detach().requires_grad_()
        whole = unit.gather(shard)
        tensors = {k: t.requires_grad_() for k, t in unit.split(whole).items()}
        del whole
        leaves = list(tensors.values())
        with torch.enable_grad():
            y = functional_call(unit.layer, tensors, (x,))
        gx, *gs = torch.autograd.grad(y, [x, *leaves], g)
        del y, tensors, leaves
        world = dist.get_world_size()
        flat = torch.zeros(world * unit.size)
        flat[: unit.n] = torch.cat([t.flatten() for t in gs])
        del gs
        mine = torch.empty(unit.size)
        for r in range(world):
            part = flat[r * unit.size : (r + 1) * unit.size]
            dist.reduce(part, r)
            if r == dist.get_rank():
                mine.copy_(part)
        return gx, mine / world, None


class Unit:
    def gather(self, shard):
        world = dist.get_world_size()
        whole = torch.empty(world * self.size)
        dist.all_gather(list(whole.split(self.size)), shard.detach())
        return whole

    def split(self, whole):
        out, at = {}, 0
        for name, shape in self.shapes.items():
            k = shape.numel()
            out[name] = whole[at : at + k].view(shape).detach()
            at += k
        return out


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        world, rank = dist.get_world_size(), dist.get_rank()
        self.units, self.shards, self.seen = [], nn.ParameterList(), {}
        for layer in layers:
            if layer in self.seen:
                self.units.append(self.seen[layer])
                continue
            params = list(layer.parameters())
            unit = Unit()
            unit.__dict__["layer"] = layer
            self.seen[layer] = unit
            self.units.append(unit)
            unit.shard = None
            if not params:
                continue
            unit.shapes = {k: p.shape for k, p in layer.named_parameters()}
            flat = torch.cat([p.detach().flatten() for p in params])
            unit.n, unit.size = flat.numel(), -(-flat.numel() // world)
            padded = torch.zeros(world * unit.size)
            padded[: unit.n] = flat
            unit.shard = nn.Parameter(padded[rank * unit.size : (rank + 1) * unit.size].clone())
            self.shards.append(unit.shard)
            del flat, padded
            for p in params:
                p.data = torch.empty(0)

    def forward(self, x):
        for unit in self.units:
            x = unit.layer(x) if unit.shard is None else Run.apply(x, unit.shard, unit)
        return x


# %% right: divides_before
"""Divided before the reduction."""

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, unit):
        ctx.save_for_backward(x)
        ctx.unit, ctx.shard = unit, shard
        whole = unit.gather(shard)
        with torch.no_grad():
            return functional_call(unit.layer, unit.split(whole), (x,))

    @staticmethod
    def backward(ctx, g):
        unit, shard = ctx.unit, ctx.shard
        x = ctx.saved_tensors[0].detach().requires_grad_()
        whole = unit.gather(shard)
        tensors = {k: t.requires_grad_() for k, t in unit.split(whole).items()}
        del whole
        leaves = list(tensors.values())
        with torch.enable_grad():
            y = functional_call(unit.layer, tensors, (x,))
        gx, *gs = torch.autograd.grad(y, [x, *leaves], g)
        del y, tensors, leaves
        world = dist.get_world_size()
        flat = torch.zeros(world * unit.size)
        flat[: unit.n] = torch.cat([t.flatten() for t in gs]) / world
        del gs
        mine = torch.empty(unit.size)
        for r in range(world):
            part = flat[r * unit.size : (r + 1) * unit.size]
            dist.reduce(part, r)
            if r == dist.get_rank():
                mine.copy_(part)
        return gx, mine, None


class Unit:
    def gather(self, shard):
        world = dist.get_world_size()
        whole = torch.empty(world * self.size)
        dist.all_gather(list(whole.split(self.size)), shard.detach())
        return whole

    def split(self, whole):
        out, at = {}, 0
        for name, shape in self.shapes.items():
            k = shape.numel()
            out[name] = whole[at : at + k].view(shape).detach()
            at += k
        return out


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        world, rank = dist.get_world_size(), dist.get_rank()
        self.units, self.shards, self.seen = [], nn.ParameterList(), {}
        for layer in layers:
            if layer in self.seen:
                self.units.append(self.seen[layer])
                continue
            params = list(layer.parameters())
            unit = Unit()
            unit.__dict__["layer"] = layer
            self.seen[layer] = unit
            self.units.append(unit)
            unit.shard = None
            if not params:
                continue
            unit.shapes = {k: p.shape for k, p in layer.named_parameters()}
            flat = torch.cat([p.detach().flatten() for p in params])
            unit.n, unit.size = flat.numel(), -(-flat.numel() // world)
            padded = torch.zeros(world * unit.size)
            padded[: unit.n] = flat
            unit.shard = nn.Parameter(padded[rank * unit.size : (rank + 1) * unit.size].clone())
            self.shards.append(unit.shard)
            del flat, padded
            for p in params:
                p.data = torch.empty(0)

    def forward(self, x):
        for unit in self.units:
            x = unit.layer(x) if unit.shard is None else Run.apply(x, unit.shard, unit)
        return x


# %% wrong: kept_for_backward
"""The gathered weights of forward are saved for backward. [earns 4]"""

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, unit):
        ctx.save_for_backward(x)
        ctx.unit, ctx.shard = unit, shard
        whole = unit.gather(shard)
        ctx.whole = whole
        with torch.no_grad():
            return functional_call(unit.layer, unit.split(whole), (x,))

    @staticmethod
    def backward(ctx, g):
        unit, shard = ctx.unit, ctx.shard
        x = ctx.saved_tensors[0].detach().requires_grad_()
        whole = ctx.whole
        tensors = {k: t.requires_grad_() for k, t in unit.split(whole).items()}
        del whole
        leaves = list(tensors.values())
        with torch.enable_grad():
            y = functional_call(unit.layer, tensors, (x,))
        gx, *gs = torch.autograd.grad(y, [x, *leaves], g)
        del y, tensors, leaves
        world = dist.get_world_size()
        flat = torch.zeros(world * unit.size)
        flat[: unit.n] = torch.cat([t.flatten() for t in gs])
        del gs
        mine = torch.empty(unit.size)
        for r in range(world):
            part = flat[r * unit.size : (r + 1) * unit.size]
            dist.reduce(part, r)
            if r == dist.get_rank():
                mine.copy_(part)
        return gx, mine / world, None


class Unit:
    def gather(self, shard):
        world = dist.get_world_size()
        whole = torch.empty(world * self.size)
        dist.all_gather(list(whole.split(self.size)), shard.detach())
        return whole

    def split(self, whole):
        out, at = {}, 0
        for name, shape in self.shapes.items():
            k = shape.numel()
            out[name] = whole[at : at + k].view(shape).detach()
            at += k
        return out


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        world, rank = dist.get_world_size(), dist.get_rank()
        self.units, self.shards, self.seen = [], nn.ParameterList(), {}
        for layer in layers:
            if layer in self.seen:
                self.units.append(self.seen[layer])
                continue
            params = list(layer.parameters())
            unit = Unit()
            unit.__dict__["layer"] = layer
            self.seen[layer] = unit
            self.units.append(unit)
            unit.shard = None
            if not params:
                continue
            unit.shapes = {k: p.shape for k, p in layer.named_parameters()}
            flat = torch.cat([p.detach().flatten() for p in params])
            unit.n, unit.size = flat.numel(), -(-flat.numel() // world)
            padded = torch.zeros(world * unit.size)
            padded[: unit.n] = flat
            unit.shard = nn.Parameter(padded[rank * unit.size : (rank + 1) * unit.size].clone())
            self.shards.append(unit.shard)
            del flat, padded
            for p in params:
                p.data = torch.empty(0)

    def forward(self, x):
        for unit in self.units:
            x = unit.layer(x) if unit.shard is None else Run.apply(x, unit.shard, unit)
        return x


# %% wrong: shared_on_unit
"""The input is kept on the unit: a layer used twice sees the last one. [earns 3]"""

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, unit):
        unit.x = x
        ctx.unit, ctx.shard = unit, shard
        whole = unit.gather(shard)
        with torch.no_grad():
            return functional_call(unit.layer, unit.split(whole), (x,))

    @staticmethod
    def backward(ctx, g):
        unit, shard = ctx.unit, ctx.shard
        x = unit.x.detach().requires_grad_()
        whole = unit.gather(shard)
        tensors = {k: t.requires_grad_() for k, t in unit.split(whole).items()}
        del whole
        leaves = list(tensors.values())
        with torch.enable_grad():
            y = functional_call(unit.layer, tensors, (x,))
        gx, *gs = torch.autograd.grad(y, [x, *leaves], g)
        del y, tensors, leaves
        world = dist.get_world_size()
        flat = torch.zeros(world * unit.size)
        flat[: unit.n] = torch.cat([t.flatten() for t in gs])
        del gs
        mine = torch.empty(unit.size)
        for r in range(world):
            part = flat[r * unit.size : (r + 1) * unit.size]
            dist.reduce(part, r)
            if r == dist.get_rank():
                mine.copy_(part)
        return gx, mine / world, None


class Unit:
    def gather(self, shard):
        world = dist.get_world_size()
        whole = torch.empty(world * self.size)
        dist.all_gather(list(whole.split(self.size)), shard.detach())
        return whole

    def split(self, whole):
        out, at = {}, 0
        for name, shape in self.shapes.items():
            k = shape.numel()
            out[name] = whole[at : at + k].view(shape).detach()
            at += k
        return out


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        world, rank = dist.get_world_size(), dist.get_rank()
        self.units, self.shards, self.seen = [], nn.ParameterList(), {}
        for layer in layers:
            if layer in self.seen:
                self.units.append(self.seen[layer])
                continue
            params = list(layer.parameters())
            unit = Unit()
            unit.__dict__["layer"] = layer
            self.seen[layer] = unit
            self.units.append(unit)
            unit.shard = None
            if not params:
                continue
            unit.shapes = {k: p.shape for k, p in layer.named_parameters()}
            flat = torch.cat([p.detach().flatten() for p in params])
            unit.n, unit.size = flat.numel(), -(-flat.numel() // world)
            padded = torch.zeros(world * unit.size)
            padded[: unit.n] = flat
            unit.shard = nn.Parameter(padded[rank * unit.size : (rank + 1) * unit.size].clone())
            self.shards.append(unit.shard)
            del flat, padded
            for p in params:
                p.data = torch.empty(0)

    def forward(self, x):
        for unit in self.units:
            x = unit.layer(x) if unit.shard is None else Run.apply(x, unit.shard, unit)
        return x


# %% wrong: gradient_of_x_stops
"""backward returns zeros for x, so layers below get no gradient."""

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, unit):
        ctx.save_for_backward(x)
        ctx.unit, ctx.shard = unit, shard
        whole = unit.gather(shard)
        with torch.no_grad():
            return functional_call(unit.layer, unit.split(whole), (x,))

    @staticmethod
    def backward(ctx, g):
        unit, shard = ctx.unit, ctx.shard
        x = ctx.saved_tensors[0].detach().requires_grad_()
        whole = unit.gather(shard)
        tensors = {k: t.requires_grad_() for k, t in unit.split(whole).items()}
        del whole
        leaves = list(tensors.values())
        with torch.enable_grad():
            y = functional_call(unit.layer, tensors, (x,))
        gx, *gs = torch.autograd.grad(y, [x, *leaves], g)
        del y, tensors, leaves
        world = dist.get_world_size()
        flat = torch.zeros(world * unit.size)
        flat[: unit.n] = torch.cat([t.flatten() for t in gs])
        del gs
        mine = torch.empty(unit.size)
        for r in range(world):
            part = flat[r * unit.size : (r + 1) * unit.size]
            dist.reduce(part, r)
            if r == dist.get_rank():
                mine.copy_(part)
        return torch.zeros_like(gx), mine / world, None


class Unit:
    def gather(self, shard):
        world = dist.get_world_size()
        whole = torch.empty(world * self.size)
        dist.all_gather(list(whole.split(self.size)), shard.detach())
        return whole

    def split(self, whole):
        out, at = {}, 0
        for name, shape in self.shapes.items():
            k = shape.numel()
            out[name] = whole[at : at + k].view(shape).detach()
            at += k
        return out


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        world, rank = dist.get_world_size(), dist.get_rank()
        self.units, self.shards, self.seen = [], nn.ParameterList(), {}
        for layer in layers:
            if layer in self.seen:
                self.units.append(self.seen[layer])
                continue
            params = list(layer.parameters())
            unit = Unit()
            unit.__dict__["layer"] = layer
            self.seen[layer] = unit
            self.units.append(unit)
            unit.shard = None
            if not params:
                continue
            unit.shapes = {k: p.shape for k, p in layer.named_parameters()}
            flat = torch.cat([p.detach().flatten() for p in params])
            unit.n, unit.size = flat.numel(), -(-flat.numel() // world)
            padded = torch.zeros(world * unit.size)
            padded[: unit.n] = flat
            unit.shard = nn.Parameter(padded[rank * unit.size : (rank + 1) * unit.size].clone())
            self.shards.append(unit.shard)
            del flat, padded
            for p in params:
                p.data = torch.empty(0)

    def forward(self, x):
        for unit in self.units:
            x = unit.layer(x) if unit.shard is None else Run.apply(x, unit.shard, unit)
        return x


# %% wrong: keeps_the_full_copy
"""The padded whole of each layer stays, as a view's storage. [earns 4]"""

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, unit):
        ctx.save_for_backward(x)
        ctx.unit, ctx.shard = unit, shard
        whole = unit.gather(shard)
        with torch.no_grad():
            return functional_call(unit.layer, unit.split(whole), (x,))

    @staticmethod
    def backward(ctx, g):
        unit, shard = ctx.unit, ctx.shard
        x = ctx.saved_tensors[0].detach().requires_grad_()
        whole = unit.gather(shard)
        tensors = {k: t.requires_grad_() for k, t in unit.split(whole).items()}
        del whole
        leaves = list(tensors.values())
        with torch.enable_grad():
            y = functional_call(unit.layer, tensors, (x,))
        gx, *gs = torch.autograd.grad(y, [x, *leaves], g)
        del y, tensors, leaves
        world = dist.get_world_size()
        flat = torch.zeros(world * unit.size)
        flat[: unit.n] = torch.cat([t.flatten() for t in gs])
        del gs
        mine = torch.empty(unit.size)
        for r in range(world):
            part = flat[r * unit.size : (r + 1) * unit.size]
            dist.reduce(part, r)
            if r == dist.get_rank():
                mine.copy_(part)
        return gx, mine / world, None


class Unit:
    def gather(self, shard):
        world = dist.get_world_size()
        whole = torch.empty(world * self.size)
        dist.all_gather(list(whole.split(self.size)), shard.detach())
        return whole

    def split(self, whole):
        out, at = {}, 0
        for name, shape in self.shapes.items():
            k = shape.numel()
            out[name] = whole[at : at + k].view(shape).detach()
            at += k
        return out


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        world, rank = dist.get_world_size(), dist.get_rank()
        self.units, self.shards, self.seen = [], nn.ParameterList(), {}
        for layer in layers:
            if layer in self.seen:
                self.units.append(self.seen[layer])
                continue
            params = list(layer.parameters())
            unit = Unit()
            unit.__dict__["layer"] = layer
            self.seen[layer] = unit
            self.units.append(unit)
            unit.shard = None
            if not params:
                continue
            unit.shapes = {k: p.shape for k, p in layer.named_parameters()}
            flat = torch.cat([p.detach().flatten() for p in params])
            unit.n, unit.size = flat.numel(), -(-flat.numel() // world)
            padded = torch.zeros(world * unit.size)
            padded[: unit.n] = flat
            unit.shard = nn.Parameter(padded[rank * unit.size : (rank + 1) * unit.size])
            self.shards.append(unit.shard)
            del flat, padded
            for p in params:
                p.data = torch.empty(0)

    def forward(self, x):
        for unit in self.units:
            x = unit.layer(x) if unit.shard is None else Run.apply(x, unit.shard, unit)
        return x


# %% wrong: linear_only
"""It knows linear layers with a bias; others keep their parameters. [earns 3]"""

import math
import torch
import torch.distributed as dist
from torch import nn


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, shapes):
        ctx.save_for_backward(x, shard)
        ctx.shapes = shapes
        w, b = gather(shard, shapes)
        return x @ w.T + b

    @staticmethod
    def backward(ctx, g):
        x, shard = ctx.saved_tensors
        w, b = gather(shard, ctx.shapes)
        gx = g @ w
        del w, b
        world, rank = dist.get_world_size(), dist.get_rank()
        flat = torch.zeros(world * len(shard))
        n = g.shape[1] * x.shape[1]
        flat[:n] = (g.T @ x).flatten()
        flat[n : n + g.shape[1]] = g.sum(0)
        parts = list(flat.chunk(world))
        for o, part in enumerate(parts):
            dist.reduce(part, o)
        return gx, parts[rank].clone() / world, None


def gather(shard, shapes):
    world = dist.get_world_size()
    flat = torch.empty(world * len(shard))
    dist.all_gather(list(flat.chunk(world)), shard.detach())
    a = math.prod(shapes[0])
    return flat[:a].view(shapes[0]), flat[a : a + shapes[1][0]]


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.plan, self.shards, seen = [], nn.ParameterList(), {}
        world, rank = dist.get_world_size(), dist.get_rank()
        for layer in layers:
            if not isinstance(layer, nn.Linear):
                self.plan.append(layer)
                continue
            if id(layer) not in seen:
                shapes = (layer.weight.shape, layer.bias.shape)
                flat = torch.cat([layer.weight.data.flatten(), layer.bias.data])
                n = -(-len(flat) // world)
                flat = torch.nn.functional.pad(flat, (0, n * world - len(flat)))
                seen[id(layer)] = len(self.shards), shapes
                self.shards.append(nn.Parameter(flat[rank * n : (rank + 1) * n].clone()))
                layer.weight.data = torch.empty(0)
                layer.bias.data = torch.empty(0)
            self.plan.append(seen[id(layer)])

    def forward(self, x):
        for item in self.plan:
            x = Fn.apply(x, self.shards[item[0]], item[1]) if isinstance(item, tuple) else item(x)
        return x


# %% wrong: whole_layers
"""Each layer belongs to one rank as a whole, which broadcasts it when it is used. [earns 4]"""

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call


class Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, hook, unit):
        ctx.unit = unit
        ctx.save_for_backward(x)
        return functional_call(unit.layer[0], unit.fetch(), (x,))

    @staticmethod
    def backward(ctx, g):
        unit, (x,) = ctx.unit, ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            ws = {n: w.requires_grad_() for n, w in unit.fetch().items()}
            y = functional_call(unit.layer[0], ws, (x,))
        gx, *gs = torch.autograd.grad(y, (x, *ws.values()), g)
        del ws, y
        flat = torch.cat([one.flatten() for one in gs])
        del gs
        dist.reduce(flat, unit.owner)
        if unit.owner == dist.get_rank():
            flat /= dist.get_world_size()
            unit.flat.grad = flat if unit.flat.grad is None else unit.flat.grad + flat
        return gx, torch.zeros(()), None


class Unit:
    def __init__(self, layer, owner):
        self.layer, self.owner = [layer], owner
        self.shapes = {n: p.shape for n, p in layer.named_parameters()}
        self.size = sum(s.numel() for s in self.shapes.values())
        self.flat = None
        if owner == dist.get_rank():
            self.flat = nn.Parameter(torch.cat([p.detach().flatten() for p in layer.parameters()]))
        for p in layer.parameters():
            p.data = torch.empty(0)

    def fetch(self):
        flat = torch.empty(self.size) if self.flat is None else self.flat.detach()
        dist.broadcast(flat, self.owner)
        parts = flat.split([s.numel() for s in self.shapes.values()])
        return {n: p.view(s).detach() for (n, s), p in zip(self.shapes.items(), parts)}


class ShardedLayers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.todo, made = [], {}
        self.flats = nn.ParameterList()
        self.hook = [torch.zeros((), requires_grad=True)]
        for layer in layers:
            if layer not in made:
                made[layer] = layer
                if list(layer.parameters()):
                    count = sum(isinstance(u, Unit) for u in made.values())
                    made[layer] = unit = Unit(layer, count % dist.get_world_size())
                    if unit.flat is not None:
                        self.flats.append(unit.flat)
            self.todo.append(made[layer])

    def forward(self, x):
        for one in self.todo:
            x = Run.apply(x, self.hook[0], one) if isinstance(one, Unit) else one(x)
        return x


# %% wrong: several_shards
"""One shard for each parameter, not for each layer. [earns 4]"""

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
        self.run = [layer]
        self.shards = nn.ParameterList(chunks(p)[dist.get_rank()].clone() for p in layer.parameters())
        for p in layer.parameters():
            p.data = torch.empty(0)

    def forward(self, x):
        return Gathered.apply(x, self, *self.shards) if self.shapes else self.run[0](x)

    def gathered(self, shards):
        return {n: gather(s, shape) for (n, shape), s in zip(self.shapes.items(), shards)}


def chunks(tensor):
    world, n = dist.get_world_size(), tensor.numel()
    return torch.cat([tensor.detach().flatten(), tensor.new_zeros(-n % world)]).chunk(world)


def gather(shard, shape):
    flat = shard.new_empty(dist.get_world_size() * len(shard))
    dist.all_gather(list(flat.split(len(shard))), shard.detach())
    return flat[: shape.numel()].view(shape)


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer, *shards):
        ctx.layer = layer
        ctx.save_for_backward(x, *shards)
        return functional_call(layer.run[0], layer.gathered(shards), (x,))

    @staticmethod
    def backward(ctx, gradient):
        x, *shards = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            weights = {n: w.requires_grad_() for n, w in ctx.layer.gathered(shards).items()}
            output = functional_call(ctx.layer.run[0], weights, (x,))
        of_x, *of_weights = torch.autograd.grad(output, (x, *weights.values()), gradient)
        del weights, output
        mine = []
        for g in of_weights:
            parts = chunks(g)
            for owner, part in enumerate(parts):
                dist.reduce(part, owner)
            mine.append(parts[dist.get_rank()] / dist.get_world_size())
        return of_x, None, *mine
