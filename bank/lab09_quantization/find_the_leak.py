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
