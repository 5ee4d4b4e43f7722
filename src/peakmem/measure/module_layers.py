"""The layer of a model that makes each tensor, observed by hooks while modules run.

A layer is a module's path up to its first number, such as `model.layers.3`; if the path has none,
its first name. A parameter's gradient and optimizer state belong to the parameter's layer.
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

__all__ = ["layer_of", "watching_layers"]


def layer_of(path: str) -> str:
    """Return the layer that a module belongs to, given its path within the model.

    >>> layer_of("model.layers.3.mlp.up_proj"), layer_of("lm_head"), layer_of("")
    ('model.layers.3', 'lm_head', '')
    """
    parts = path.split(".")
    numbered = [n for n, part in enumerate(parts) if part.isdigit()]
    return ".".join(parts[: numbered[0] + 1]) if numbered else parts[0]


@contextmanager
def watching_layers(storages: Storages) -> Iterator[None]:
    """Give each new row the layer that makes it, until the block ends.

    Layers are named within the outermost module that is called.
    """
    names: WeakKeyDictionary[torch.nn.Module, str] = WeakKeyDictionary()
    around: list[str] = []

    def enter(module: torch.nn.Module, args: Any) -> None:
        if module not in names:
            _name(module, names, storages)
        around.append(storages.layer)
        storages.layer = names[module] or storages.layer

    def leave(module: torch.nn.Module, args: Any, output: Any) -> None:
        storages.layer = around.pop()

    def stepped(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        for parameter in tensors_in([group["params"] for group in optimizer.param_groups]):
            row = storages.row(parameter)
            state = optimizer.state.get(parameter, {})
            for tensor in tensors_in([parameter.grad, list(state.values())]):
                of_parameter = storages.row(tensor)
                if row is not None and of_parameter is not None:
                    of_parameter.layer = row.layer

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
    root: torch.nn.Module, names: WeakKeyDictionary[torch.nn.Module, str], storages: Storages
) -> None:
    """Name the layers of all modules of a model, and assign its parameters to them."""
    for path, module in root.named_modules():
        if module in names:
            continue
        names[module] = layer_of(path)
        for tensor in [*module.parameters(recurse=False), *module.buffers(recurse=False)]:
            row = storages.row(tensor)
            if row is not None:
                row.layer = names[module]
