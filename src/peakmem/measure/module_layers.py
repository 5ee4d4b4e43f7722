"""The layer and the module that make each tensor, observed by hooks while modules run.

A layer is a module's path up to its first number, such as `model.layers.3`; if the path has none,
its first name. A layer's modules are its own attributes, such as `self_attn`. A parameter's
gradient and optimizer state belong to the parameter's layer and module.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.optim.optimizer import register_optimizer_step_post_hook

from peakmem.measure.storages import Storages, tensors_in

__all__ = ["layer_of", "module_of", "watching_layers"]


def layer_of(path: str) -> str:
    """Return the layer that a module belongs to, given its path within the model.

    >>> layer_of("model.layers.3.mlp.up_proj"), layer_of("lm_head"), layer_of("")
    ('model.layers.3', 'lm_head', '')
    """
    parts = path.split(".")
    numbered = [n for n, part in enumerate(parts) if part.isdigit()]
    return ".".join(parts[: numbered[0] + 1]) if numbered else parts[0]


def module_of(path: str) -> str:
    """Return the module within its layer that a path leads to or into; empty for the layer itself.

    >>> module_of("model.layers.3.mlp.up_proj"), module_of("encoder.block.0.layer.1.dense.wi")
    ('mlp', 'layer.1.dense')
    """
    layer = layer_of(path)
    parts = path[len(layer) :].strip(".").split(".")
    n = 1
    while n < len(parts) and (parts[n].isdigit() or parts[n - 1].isdigit()):
        n += 1  # a list's own name says nothing
    return ".".join(parts[:n])


@contextmanager
def watching_layers(storages: Storages) -> Iterator[None]:
    """Give each new row the layer and the module that make it, until the block ends.

    Layers are named within the outermost module that is called.
    """
    names: WeakKeyDictionary[torch.nn.Module, tuple[str, str]] = WeakKeyDictionary()
    around: list[tuple[str, str]] = []

    def enter(module: torch.nn.Module, args: Any) -> None:
        if module not in names:
            _name(module, names, storages)
        around.append((storages.layer, storages.module))
        if names[module][0]:
            storages.layer, storages.module = names[module]

    def leave(module: torch.nn.Module, args: Any, output: Any) -> None:
        storages.layer, storages.module = around.pop()

    def stepped(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        for parameter in tensors_in([group["params"] for group in optimizer.param_groups]):
            row = storages.row(parameter)
            state = optimizer.state.get(parameter, {})
            for tensor in tensors_in([parameter.grad, list(state.values())]):
                of_parameter = storages.row(tensor)
                if row is not None and of_parameter is not None:
                    of_parameter.layer, of_parameter.module = row.layer, row.module

    handles = [
        register_module_forward_pre_hook(enter),
        register_module_forward_hook(leave, always_call=True),
        register_optimizer_step_post_hook(stepped),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _name(
    root: torch.nn.Module,
    names: WeakKeyDictionary[torch.nn.Module, tuple[str, str]],
    storages: Storages,
) -> None:
    """Name the layers of all modules of a model, and assign its parameters to them."""
    for path, module in root.named_modules():
        if module in names:
            continue
        names[module] = layer_of(path), module_of(path)
        for tensor in [
            *module.parameters(recurse=False),
            *module.buffers(recurse=False),
        ]:
            row = storages.row(tensor)
            if row is not None:
                row.layer, row.module = names[module]
