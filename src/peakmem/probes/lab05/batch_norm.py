"""Probe of lab 5's gap between a batch and its micro-batches under batch normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from peakmem.probes import Namespace
from peakmem.probes.lab05.models import normed_perceptron

__all__ = ["batch_norm_gap"]

Array = np.ndarray[Any, np.dtype[Any]]


def batch_norm_gap(
    student: Namespace,
    weights: Sequence[Array],
    norm: str,
    training: str,
    x: Array,
    micro_batch: int,
) -> dict[str, Any]:
    """Call `batch_norm_gap` on a model of `normed_perceptron`.

    The model looks partly trained: it has gradients and changed running statistics. If `training`
    is "mixed", the norm is in evaluation mode and the rest in training mode, as with a frozen norm.
    Returns `value`, and the parts of the model and the input that the call `changed`.
    """
    layers = normed_perceptron(weights, norm)
    model = nn.Sequential(layers).train(training != "off")  # nested layers have modes, too
    if training == "mixed":
        layers[1].eval()
    modes, settings = _modes(model), _settings(model)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    for buffer in model.buffers():
        buffer.fill_(3)
    given = torch.tensor(x)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    value = student.batch_norm_gap(model, given, micro_batch)
    records = torch.is_grad_enabled()
    torch.set_grad_enabled(True)  # in case the function switched it off
    after = model.state_dict()
    changed = {
        "state": after.keys() != state.keys()
        or not all(bool((after[name] == state[name]).all()) for name in state),
        "mode": _modes(model) != modes,
        "settings": _settings(model) != settings,
        "gradients": any(
            p.grad is None or not bool((p.grad == 1).all()) for p in model.parameters()
        ),
        "x": given.requires_grad or not bool((given == torch.tensor(x)).all()),
        "recording of gradients": not records,
    }
    return {
        "value": "a tensor" if isinstance(value, Tensor) else value,
        "changed": [name for name, is_changed in changed.items() if is_changed],
    }


def _modes(model: nn.Module) -> list[bool]:
    return [module.training for module in model.modules()]


def _settings(model: nn.Module) -> list[object]:
    """What decides how the model runs and trains, apart from its state and its modes."""
    names = ("momentum", "track_running_stats", "_forward_hooks", "_forward_pre_hooks")
    modules = [[str(getattr(module, name, "")) for name in names] for module in model.modules()]
    return [modules, [parameter.requires_grad for parameter in model.parameters()]]
