# %% right: loop
"""A loop under no_grad."""
import torch


def stream_forward(host_layers, x):
    with torch.no_grad():
        for host_layer in host_layers:
            layer = host_layer.load()
            x = layer(x)
            del layer
    return x


# %% right: next_one
"""Loads the next layer before this one computes: two at once."""
import torch


@torch.inference_mode()
def stream_forward(host_layers, x):
    following = host_layers[0].load() if host_layers else None
    for i in range(len(host_layers)):
        layer, following = following, None
        if i + 1 < len(host_layers):
            following = host_layers[i + 1].load()
        x = layer(x)
        layer = None
    return x


# %% right: recursion
"""Recursion: the rest of the layers get this one's output."""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    if not host_layers:
        return x
    return stream_forward(host_layers[1:], host_layers[0].load()(x))


# %% right: reduce
"""functools.reduce over the layers."""
import functools

import torch


def stream_forward(host_layers, x):
    with torch.no_grad():
        return functools.reduce(lambda y, layer: layer.load()(y), host_layers, x)


# %% wrong: all_layers_at_once
"""Loads everything first. [earns 1]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    layers = [host_layer.load() for host_layer in host_layers]
    for layer in layers:
        x = layer(x)
    return x


# %% wrong: backwards
"""From the last layer to the first. [earns 2]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    for host_layer in reversed(host_layers):
        x = host_layer.load()(x)
    return x


# %% wrong: first_layer_left_out
"""Begins with layer 1. [earns 0]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    for i in range(1, len(host_layers)):
        x = host_layers[i].load()(x)
    return x


# %% wrong: first_layer_only
"""return is indented too far."""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    for host_layer in host_layers:
        x = host_layer.load()(x)
        return x
    return x


# %% wrong: input_changed
"""Computes in place of its input. [earns 2]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    given = x
    for host_layer in host_layers:
        x = host_layer.load()(x)
    given.zero_()
    return x if host_layers else x + 1


# %% wrong: last_layer_left_out
"""Stops one layer early. [earns 0]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    for i in range(len(host_layers) - 1):
        x = host_layers[i].load()(x)
    return x


# %% wrong: not_chained
"""Every layer gets the first input. [earns 2]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    y = x
    for host_layer in host_layers:
        y = host_layer.load()(x)
    return y


# %% wrong: returns_the_input
"""Forgets to keep the outputs. [earns 2]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    for host_layer in host_layers:
        host_layer.load()(x)
    return x


# %% wrong: summed
"""Adds up what the layers make of the same input. [earns 2]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    return sum(host_layer.load()(x) for host_layer in host_layers) if host_layers else x


# %% wrong: three_at_once
"""Keeps two layers while it loads the next. [earns 1]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    before = layer = None
    for host_layer in host_layers:
        following = host_layer.load()
        before, layer = layer, following
        x = layer(x)
    return x


# %% wrong: with_gradients
"""Autograd keeps every layer's weights. [earns 1]"""
def stream_forward(host_layers, x):
    for host_layer in host_layers:
        x = host_layer.load()(x)
    return x


# %% wrong: gradients_left_off
"""Switches gradients off, and never on again. [earns 2]"""
import torch


def stream_forward(host_layers, x):
    torch.set_grad_enabled(False)
    for host_layer in host_layers:
        x = host_layer.load()(x)
    return x


# %% wrong: empties_the_list
"""Takes each layer out of the caller's list. [earns 2]"""
import torch


def stream_forward(host_layers, x):
    with torch.no_grad():
        while host_layers:
            x = host_layers.pop(0).load()(x)
    return x


# %% wrong: graph_recorded
"""The last layer computes outside of no_grad. [earns 1]"""
import torch


def stream_forward(host_layers, x):
    with torch.no_grad():
        for host_layer in host_layers[:-1]:
            x = host_layer.load()(x)
    return host_layers[-1].load()(x) if host_layers else x


# %% wrong: array_returned
"""Returns an array in place of a tensor. [earns 2]"""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    for host_layer in host_layers:
        x = host_layer.load()(x)
    return x.numpy()


# %% wrong: two_layers_only
"""Runs the first two layers, however many there are."""
import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    for host_layer in host_layers[:2]:
        x = host_layer.load()(x)
    return x


# %% wrong: freezes_layers
"""Freezes the layers in place of no_grad. [earns 1]"""
import torch
def stream_forward(host_layers, x):
    for h in host_layers:
        layer = h.load()
        layer.requires_grad_(False)
        x = layer(x)
    return x


# %% wrong: each_entry_once
"""Leaves out an entry that comes again. [earns 2]"""
import torch
def stream_forward(host_layers, x):
    seen = set()
    with torch.no_grad():
        for h in host_layers:
            if id(h) in seen: continue
            seen.add(id(h))
            x = h.load()(x)
    return x


# %% wrong: one_output_buffer
"""Writes every output into one buffer of x's shape. [earns 2]"""

import torch


@torch.no_grad()
def stream_forward(host_layers, x):
    if not host_layers:
        return x
    out = x.clone()
    for host_layer in host_layers:
        out.copy_(host_layer.load()(out))
    return out


# %% right: iterator
"""An iterator and an assignment expression; the earlier set_grad_enabled is restored."""

import torch


def stream_forward(host_layers, x):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        waiting = iter(host_layers)
        while (entry := next(waiting, None)) is not None:
            layer = entry.load()
            x = layer.forward(x)
            del layer
    finally:
        torch.set_grad_enabled(before)
    return x
