# %% right: checkpoint
"""Each layer is a checkpoint."""
import torch
from torch.utils.checkpoint import checkpoint


def quantized_step(layers, x):
    def layer(x, codes, scale):
        weight = codes.float() * scale
        return torch.relu(x @ weight.T)

    output = x
    for codes, scale in layers:
        output = checkpoint(layer, output, codes, scale, use_reentrant=False)
    loss = output.square().mean()
    loss.backward()
    return loss.item()


# %% right: own_function
"""A Function that keeps the codes."""
import torch


class Int8Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, codes, scale):
        ctx.save_for_backward(codes, scale)
        return x @ codes.float().mul_(scale).T

    @staticmethod
    def backward(ctx, gradient):
        codes, scale = ctx.saved_tensors
        return gradient @ codes.float().mul_(scale), None, None


def quantized_step(layers, x):
    output = x
    for codes, scale in layers:
        output = torch.relu(Int8Layer.apply(output, codes, scale))
    loss = output.square().mean()
    loss.backward()
    return loss.detach()


# %% right: by_hand
"""No graph at all."""
import torch


def quantized_step(layers, x):
    """Backward by hand: relu's mask, and each weight recomputed."""
    outputs = [x.detach()]
    for codes, scale in layers:
        outputs.append(torch.relu(outputs[-1] @ (codes.float() * scale).T))
    loss = outputs[-1].square().mean()
    gradient = 2 * outputs[-1] / outputs[-1].numel()
    for (codes, scale), output in zip(reversed(layers), reversed(outputs)):
        gradient = (gradient * (output > 0)) @ (codes.float() * scale)
    x.grad = gradient
    return loss


# %% right: saved_tensors_hooks
"""Hooks that save the codes for the copy."""
import torch


def quantized_step(layers, x):
    """Saved weights are swapped for their codes by hooks on saved tensors."""
    made = {}

    def pack(tensor):
        return made.get(tensor.data_ptr(), tensor)

    def unpack(saved):
        if isinstance(saved, tuple):
            codes, scale = saved
            return (codes.float() * scale).T
        return saved

    output = x
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        for codes, scale in layers:
            weight = codes.float() * scale
            made = {weight.data_ptr(): (codes, scale)}
            output = torch.relu(output @ weight.T)
            del weight
    loss = output.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: copies_stay
"""The code given, as it was. [earns 1]"""
import torch


def quantized_step(layers, x):
    output = x
    for codes, scale in layers:
        weight = codes.float() * scale
        output = torch.relu(output @ weight.T)
    loss = output.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: all_up_front
"""Checkpoints, but all copies are made first. [earns 1]"""
import torch
from torch.utils.checkpoint import checkpoint


def quantized_step(layers, x):
    def layer(x, codes, scale):
        return torch.relu(x @ codes.T)

    layers = [(codes.float() * scale, None) for codes, scale in layers]
    output = x
    for codes, scale in layers:
        output = checkpoint(layer, output, codes, scale, use_reentrant=False)
    loss = output.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: deletes_its_name
"""del, while the graph holds on. [earns 1]"""
import torch


def quantized_step(layers, x):
    output = x
    for codes, scale in layers:
        weight = codes.float() * scale
        output = torch.relu(output @ weight.T)
        del weight
    loss = output.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: some_copies_stay
"""Checkpoints of eight layers at a time. [earns 1]"""
import torch
from torch.utils.checkpoint import checkpoint


def quantized_step(layers, x):
    def several(x, first):
        for codes, scale in layers[first : first + 8]:
            x = torch.relu(x @ (codes.float() * scale).T)
        return x

    output = x
    for first in range(0, len(layers), 8):
        output = checkpoint(several, output, first, use_reentrant=False)
    loss = output.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: no_gradient
"""Detaches the input."""
import torch
from torch.utils.checkpoint import checkpoint


def quantized_step(layers, x):
    def layer(x, codes, scale):
        weight = codes.float() * scale
        return torch.relu(x @ weight.T)

    output = x.detach().requires_grad_()
    for codes, scale in layers:
        output = checkpoint(layer, output, codes, scale, use_reentrant=False)
    loss = output.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: scale_forgotten
"""Codes alone."""
import torch
from torch.utils.checkpoint import checkpoint


def quantized_step(layers, x):
    def layer(x, codes, scale):
        weight = codes.float()
        return torch.relu(x @ weight.T)

    output = x
    for codes, scale in layers:
        output = checkpoint(layer, output, codes, scale, use_reentrant=False)
    loss = output.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: half_precision
"""Copies of 16 bits."""
import torch
from torch.utils.checkpoint import checkpoint


def quantized_step(layers, x):
    def layer(x, codes, scale):
        weight = codes.bfloat16() * scale.bfloat16()
        return torch.relu(x.bfloat16() @ weight.T).float()

    output = x
    for codes, scale in layers:
        output = checkpoint(layer, output, codes, scale, use_reentrant=False)
    loss = output.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: last_layer_left_out
"""Ends early."""
import torch
from torch.utils.checkpoint import checkpoint


def quantized_step(layers, x):
    def layer(x, codes, scale):
        weight = codes.float() * scale
        return torch.relu(x @ weight.T)

    output = x
    for codes, scale in layers[:-1]:
        output = checkpoint(layer, output, codes, scale, use_reentrant=False)
    loss = output.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: no_relu
"""A chain of products."""
import torch
from torch.utils.checkpoint import checkpoint


def quantized_step(layers, x):
    def layer(x, codes, scale):
        weight = codes.float() * scale
        return x @ weight.T

    output = x
    for codes, scale in layers:
        output = checkpoint(layer, output, codes, scale, use_reentrant=False)
    loss = output.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: no_grad
"""No graph, so backward fails."""
import torch


def quantized_step(layers, x):
    output = x
    torch.set_grad_enabled(False)
    for codes, scale in layers:
        weight = codes.float() * scale
        output = torch.relu(output @ weight.T)
    torch.set_grad_enabled(True)
    loss = output.square().mean()
    loss.backward()
    return loss.item()


# %% right: codes_in_ctx
"""A Function for a layer that keeps the codes."""

import torch


class Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, codes, scale):
        ctx.codes, ctx.scale = codes, scale
        return x @ (codes.float() * scale).T

    @staticmethod
    def backward(ctx, g):
        return g @ (ctx.codes.float() * ctx.scale), None, None


def quantized_step(layers, x):
    h = x
    for layer in layers:
        h = Layer.apply(h, *layer).relu()
    loss = (h**2).mean()
    loss.backward()
    return loss.item()


# %% right: checkpoint_recursive
"""torch's checkpoint, recursively; a tensor returned."""

import torch
import torch.utils.checkpoint


def run(x, codes, scale):
    return torch.nn.functional.linear(x, codes * scale).relu()


def through(layers, x):
    if not layers:
        return x
    first, *rest = layers
    return through(rest, torch.utils.checkpoint.checkpoint(run, x, *first, use_reentrant=False))


def quantized_step(layers, x):
    loss = through(list(layers), x).pow(2).mean()
    loss.backward()
    return loss.detach()


# %% right: scaled_after
"""The scale multiplies the output: x @ codes.T * scale.T, codes cast in a Function."""

import torch


class Codes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, codes):
        ctx.save_for_backward(codes)
        return x @ codes.float().T

    @staticmethod
    def backward(ctx, g):
        (codes,) = ctx.saved_tensors
        return g @ codes.float(), None


def quantized_step(layers, x):
    h = x
    for codes, scale in layers:
        h = (Codes.apply(h, codes) * scale.T).relu()
    loss = h.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: last_codes_in_products
"""The last layer's codes serve for all in backward."""

import torch


class Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, codes, scale):
        Layer.last = codes, scale
        return x @ (codes.float() * scale).T

    @staticmethod
    def backward(ctx, g):
        codes, scale = Layer.last
        return g @ (codes.float() * scale), None, None


def quantized_step(layers, x):
    h = x
    for codes, scale in layers:
        h = torch.relu(Layer.apply(h, codes, scale))
    loss = h.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: saved_copies
"""The Function saves the float copy. [earns 1]"""

import torch


class Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, codes, scale):
        w = codes.float() * scale
        ctx.save_for_backward(w)
        return x @ w.T

    @staticmethod
    def backward(ctx, g):
        return g @ ctx.saved_tensors[0], None, None


def quantized_step(layers, x):
    h = x
    for codes, scale in layers:
        h = torch.relu(Layer.apply(h, codes, scale))
    loss = h.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: scale_twice
"""Backward multiplies by the step twice."""

import torch


class Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, codes, scale):
        ctx.save_for_backward(codes, scale)
        return x @ (codes.float() * scale).T

    @staticmethod
    def backward(ctx, g):
        codes, scale = ctx.saved_tensors
        return g @ (codes.float() * scale * scale), None, None


def quantized_step(layers, x):
    h = x
    for codes, scale in layers:
        h = torch.relu(Layer.apply(h, codes, scale))
    loss = h.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: gradient_set_on_a_copy
"""x.grad is set on a detached x, and x's own stays None."""

import torch


class Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, codes, scale):
        ctx.save_for_backward(codes, scale)
        return x @ (codes.float() * scale).T

    @staticmethod
    def backward(ctx, g):
        codes, scale = ctx.saved_tensors
        return g @ (codes.float() * scale), None, None


def quantized_step(layers, x):
    x = x.detach().requires_grad_()
    h = x
    for codes, scale in layers:
        h = torch.relu(Layer.apply(h, codes, scale))
    loss = h.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: codes_in_place
"""The codes are halved on the way: the layers change."""

import torch


class Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, codes, scale):
        ctx.codes = codes.clone(), scale
        return x @ (codes.float() * scale).T

    @staticmethod
    def backward(ctx, g):
        codes, scale = ctx.codes
        return g @ (codes.float() * scale), None, None


def quantized_step(layers, x):
    h = x
    for codes, scale in layers:
        h = torch.relu(Layer.apply(h, codes, scale))
    for codes, _ in layers:
        codes //= 2
    loss = h.square().mean()
    loss.backward()
    return loss.item()


# %% wrong: last_codes
"""The checkpointed function reads the loop's names when backward runs."""
import torch
from torch.utils.checkpoint import checkpoint


def quantized_step(layers, x):
    output = x
    for codes, scale in layers:
        output = checkpoint(
            lambda h: torch.relu(h @ (codes.float() * scale).T), output, use_reentrant=False
        )
    loss = output.square().mean()
    loss.backward()
    return loss.item()


# %% right: loss_with_its_graph
"""The loss is a tensor that requires a gradient."""
from functools import reduce

import torch
from torch.utils.checkpoint import checkpoint


def layer(h, codes, scale):
    return (h @ (codes * scale).mT).clamp(min=0)


def quantized_step(layers, x):
    output = reduce(lambda h, pair: checkpoint(layer, h, *pair, use_reentrant=False), layers, x)
    loss = (output * output).sum() / output.numel()
    loss.backward()
    return loss
