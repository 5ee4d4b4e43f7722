# %% right: numbers_in_the_hook
"""Numbers are noted, and the hooks go before backward."""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output.detach().square().mean().item())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    for hook in hooks:
        hook.remove()
    x.sum().backward()
    return log


# %% right: hooks_removed_after_backward
"""Backward's values come after forward's, and are cut off."""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output.detach().square().mean().item())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()
    for hook in hooks:
        hook.remove()
    return log[: len(layers)]


# %% right: small_tensors
"""The means stay tensors, without a graph, until the end."""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output.detach().square().mean())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    for hook in hooks:
        hook.remove()
    x.sum().backward()
    return [value.item() for value in log]


# %% right: running_under_no_grad
"""The hook runs without recording."""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        with torch.no_grad():
            log.append((output * output).mean().item())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    for hook in hooks:
        hook.remove()
    x.sum().backward()
    return log


# %% right: by_layer
"""A dict by layer keeps each layer's first value."""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = {}

    def note(layer, inputs, output):
        log.setdefault(id(layer), output.detach().square().mean().item())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()
    for hook in hooks:
        hook.remove()
    return [log[id(layer)] for layer in layers]


# %% right: second_pass
"""No hook at all: the numbers come of a further forward, without a graph."""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []
    with torch.no_grad():
        h = x
        for layer in layers:
            h = layer(h)
            log.append(float(h.square().mean()))

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()
    return log


# %% wrong: outputs_of_each_step
"""The code as it was given."""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output)

    for layer in layers:
        layer.register_forward_hook(note)

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()
    return [output.detach().square().mean().item() for output in log[: len(layers)]]


# %% wrong: outputs_stay
"""Detached outputs, which share the storage. [earns 1]"""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output.detach())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()
    for hook in hooks:
        hook.remove()
    return [output.detach().square().mean().item() for output in log[: len(layers)]]


# %% wrong: outputs_stay_and_hooks_go
"""The hooks go, and the list keeps every output. [earns 1]"""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output)

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    for hook in hooks:
        hook.remove()
    x.sum().backward()
    return [output.detach().square().mean().item() for output in log[: len(layers)]]


# %% wrong: copies_on_the_cpu
"""Copies of the outputs: on a GPU that would help. [earns 1]"""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output.detach().cpu().clone())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    for hook in hooks:
        hook.remove()
    x.sum().backward()
    return [output.detach().square().mean().item() for output in log[: len(layers)]]


# %% wrong: graph_stays
"""A mean with its graph, which saves the output. [earns 1]"""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output.square().mean())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()
    for hook in hooks:
        hook.remove()
    return [value.detach().item() for value in log[: len(layers)]]


# %% wrong: no_checkpoint
"""The log is small, but nothing is recomputed any more. [earns 1]"""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output.detach().square().mean().item())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = segment(x, first)
    for hook in hooks:
        hook.remove()
    x.sum().backward()
    return log


# %% wrong: hooks_stay
"""Numbers, but the hooks stay on the layers."""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output.detach().square().mean().item())

    for layer in layers:
        layer.register_forward_hook(note)

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()
    return log[: len(layers)]


# %% wrong: logs_twice
"""Backward's values are not cut off."""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output.detach().square().mean().item())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()
    for hook in hooks:
        hook.remove()
    return log


# %% wrong: logs_twice_and_hooks_stay
"""A number in the hook, and nothing else is fixed."""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output.detach().square().mean().item())

    for layer in layers:
        layer.register_forward_hook(note)

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()
    return log


# %% wrong: not_squared
"""The mean of the outputs."""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output.detach().mean().item())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    for hook in hooks:
        hook.remove()
    x.sum().backward()
    return log


# %% wrong: other_hooks_stay
"""Removes the forward hooks, and leaves hooks that run before forward."""
import torch.utils.checkpoint


def step_with_log(layers, x):
    log, runs = [], []
    for layer in layers:
        layer.register_forward_pre_hook(lambda layer, inputs: runs.append(1))
    hooks = [
        layer.register_forward_hook(
            lambda layer, inputs, output: log.append(output.detach().square().mean().item())
        )
        for layer in layers
    ]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    for hook in hooks:
        hook.remove()
    x.sum().backward()
    return log


# %% right: noted_in_the_segment
"""No hooks: the segment notes each layer's first run."""
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = {}

    def segment(x, first):
        for i in range(first, min(first + 4, len(layers))):
            x = layers[i](x)
            log.setdefault(i, x.detach().square().mean().item())
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()
    return [log[i] for i in range(len(layers))]


# %% wrong: global_log
"""The log is global and the first numbers are the first step's."""

import torch
import torch.utils.checkpoint


log = []


def step_with_log(layers, x):

    def note(layer, inputs, output):
        log.append(output.detach().square().mean().item())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()
    for hook in hooks:
        hook.remove()
    return log[: len(layers)]


# %% wrong: one_segment
"""One checkpoint for all layers. [earns 1]"""

import torch
import torch.utils.checkpoint


def step_with_log(layers, x):
    log = []

    def note(layer, inputs, output):
        log.append(output.detach().square().mean().item())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first:]:
            x = layer(x)
        return x

    for first in (0,):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()
    for hook in hooks:
        hook.remove()
    return log[: len(layers)]


# %% wrong: inputs_changed
"""Makes the caller's x require a gradient. [earns 0]"""
import torch
import torch.utils.checkpoint
def step_with_log(layers, x):
    log = []
    x.requires_grad_()
    def note(layer, inputs, output):
        log.append(output.detach().square().mean().item())
    hooks = [layer.register_forward_hook(note) for layer in layers]
    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x
    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    for hook in hooks:
        hook.remove()
    x.sum().backward()
    return log

# %% wrong: sixteen_layers
"""Hard-coded 16 layers. [earns 1]"""


def step_with_log(layers, x):
    log = []
    def note(layer, inputs, output):
        if len(log) < 16:
            log.append(output.detach().square().mean().item())
    handles = [layer.register_forward_hook(note) for layer in layers]
    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x
    for first in range(0, 16, 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    for h in handles:
        h.remove()
    x.sum().backward()
    return log
