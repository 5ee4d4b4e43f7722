# %% right: deepcopy
"""Works on a copy."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        whole = twin(x)
        pieces = torch.cat([twin(piece) for piece in x.split(micro_batch)])
    return (whole - pieces).abs().max().item()


# %% right: functional
"""Calls the model on copies of its buffers; a numpy number."""
import torch
from torch.func import functional_call


def batch_norm_gap(model, x, micro_batch):
    modes = [(module, module.training) for module in model.modules()]
    model.train()
    buffers = lambda: {name: b.clone() for name, b in model.named_buffers()}
    whole = functional_call(model, buffers(), (x,)).detach().numpy()
    parts = [functional_call(model, buffers(), (p,)).detach().numpy() for p in x.split(micro_batch)]
    for module, mode in modes:
        module.training = mode
    start, largest = 0, 0.0
    for part in parts:
        largest = max(largest, abs(part - whole[start : start + len(part)]).max())
        start += len(part)
    return largest


# %% right: restores
"""Saves the state, and loads it again."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    state = copy.deepcopy(model.state_dict())
    modes = [module.training for module in model.modules()]
    model.train()
    with torch.no_grad():
        whole = model(x)
        largest = 0.0
        for start in range(0, len(x), micro_batch):
            piece = model(x[start : start + micro_batch])
            off = (piece - whole[start : start + micro_batch]).abs().max()
            largest = max(largest, float(off))
    model.load_state_dict(state)
    for module, mode in zip(model.modules(), modes):
        module.training = mode
    return largest


# %% wrong: clears_gradients
"""Clears the gradients that the model had."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    model.zero_grad()
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        pieces = torch.cat([twin(piece) for piece in x.split(micro_batch)])
        return (twin(x) - pieces).abs().max().item()


# %% wrong: drops_last
"""Leaves the short one out."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        off = twin(x) - torch.cat([twin(piece) for piece in x.split(micro_batch)])
    return off[: len(x) // micro_batch * micro_batch].abs().max().item() if len(x) >= micro_batch else 0.0


# %% wrong: recording_left_off
"""Leaves the recording of gradients switched off."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    torch.set_grad_enabled(False)
    pieces = torch.cat([twin(piece) for piece in x.split(micro_batch)])
    return (twin(x) - pieces).abs().max().item()


# %% wrong: last_micro_batch_only
"""Looks at the last micro-batch only."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        full, gap = twin(x), 0.0
        for i in range(0, len(x), micro_batch):
            gap = (full[i : i + micro_batch] - twin(x[i : i + micro_batch])).abs().max().item()
    return gap


# %% wrong: first_micro_batch_only
"""Looks at one micro-batch."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        off = twin(x) - torch.cat([twin(piece) for piece in x.split(micro_batch)])
    return off[:micro_batch].abs().max().item()


# %% wrong: leaves_mode
"""Restores the statistics, but not the mode."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    state = copy.deepcopy(model.state_dict())
    model.train()
    with torch.no_grad():
        off = model(x) - torch.cat([model(piece) for piece in x.split(micro_batch)])
    model.load_state_dict(state)
    return off.abs().max().item()


# %% wrong: mean_instead_of_largest
"""The mean."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        off = twin(x) - torch.cat([twin(piece) for piece in x.split(micro_batch)])
    return off.abs().mean().item()


# %% wrong: model_changed
"""Leaves the running statistics moved."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    mode = model.training
    model.train()
    with torch.no_grad():
        off = model(x) - torch.cat([model(piece) for piece in x.split(micro_batch)])
    model.train(mode)
    return off.abs().max().item()


# %% wrong: no_gap_in_evaluation
"""Evaluation mode."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).eval()
    with torch.no_grad():
        off = twin(x) - torch.cat([twin(piece) for piece in x.split(micro_batch)])
    return off.abs().max().item()


# %% wrong: norm_of_difference
"""The norm."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        off = twin(x) - torch.cat([twin(piece) for piece in x.split(micro_batch)])
    return off.norm().item()


# %% wrong: one_mode_for_all
"""Puts every layer into the mode of the whole."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    state, mode = copy.deepcopy(model.state_dict()), model.training
    model.train()
    with torch.no_grad():
        whole = model(x)
        largest = 0.0
        for start in range(0, len(x), micro_batch):
            piece = model(x[start : start + micro_batch])
            off = (piece - whole[start : start + micro_batch]).abs().max()
            largest = max(largest, float(off))
    model.load_state_dict(state)
    model.train(mode)
    return largest


# %% wrong: resets_statistics
"""Puts fresh running statistics in place of those that training had left."""
import torch


def batch_norm_gap(model, x, micro_batch):
    training = model.training
    model.train()
    with torch.no_grad():
        whole = model(x)
        pieces = torch.cat([model(piece) for piece in x.split(micro_batch)])
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.reset_running_stats()
    model.train(training)
    return (whole - pieces).abs().max().item()


# %% wrong: returns_tensor
"""Returns a tensor."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        off = twin(x) - torch.cat([twin(piece) for piece in x.split(micro_batch)])
    return off.abs().max()


# %% wrong: signed
"""Without absolute values."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        off = twin(x) - torch.cat([twin(piece) for piece in x.split(micro_batch)])
    return off.max().item()


# %% wrong: signed_other_way
"""Without absolute values, the other way round."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        off = twin(x) - torch.cat([twin(piece) for piece in x.split(micro_batch)])
    return (-off).max().item()


# %% wrong: sum_of_differences
"""The sum."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        off = twin(x) - torch.cat([twin(piece) for piece in x.split(micro_batch)])
    return off.abs().sum().item()


# %% wrong: train_only_if_evaluated
"""Leaves a layer in evaluation mode where the whole is in training."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model)
    if not twin.training:
        twin.train()
    with torch.no_grad():
        pieces = torch.cat([twin(piece) for piece in x.split(micro_batch)])
        return (twin(x) - pieces).abs().max().item()


# %% wrong: stops_tracking
"""Keeps the running statistics by switching their tracking off, and leaves it off."""
import torch


def batch_norm_gap(model, x, micro_batch):
    modes = [(module, module.training) for module in model.modules()]
    for module, _ in modes:
        if hasattr(module, "track_running_stats"):
            module.track_running_stats = False
    model.train()
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        whole = model(x)
        pieces = torch.cat([model(piece) for piece in x.split(micro_batch)])
    model.load_state_dict(state)
    for module, mode in modes:
        module.training = mode
    return (whole - pieces).abs().max().item()


# %% wrong: parameters_frozen
"""Switches gradients off parameter by parameter, and never on again."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    twin = copy.deepcopy(model).train()
    pieces = torch.cat([twin(piece) for piece in x.split(micro_batch)])
    return (twin(x) - pieces).abs().max().item()


# %% right: state_put_back
"""Saves modes and statistics, and puts them back in finally."""
import torch


def batch_norm_gap(model, x, micro_batch):
    modes = {m: m.training for m in model.modules()}
    saved = {k: v.clone() for k, v in model.state_dict().items()}
    try:
        model.train()
        with torch.no_grad():
            whole = model(x)
            gap = 0.0
            for start in range(0, len(x), micro_batch):
                piece = slice(start, start + micro_batch)
                gap = max(gap, (model(x[piece]) - whole[piece]).abs().max().item())
        return gap
    finally:
        model.load_state_dict(saved)
        for m, mode in modes.items():
            m.training = mode


# %% wrong: max_of_means
"""The largest of the samples' mean differences."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        return (twin(x) - torch.cat([twin(p) for p in x.split(micro_batch)])).abs().mean(1).max().item()


# %% wrong: aliased_state
"""Keeps state_dict() itself, whose tensors are the model's."""
import torch


def batch_norm_gap(model, x, micro_batch):
    modes = [m.training for m in model.modules()]
    saved = model.state_dict()
    model.train()
    with torch.no_grad():
        gap = (model(x) - torch.cat([model(p) for p in x.split(micro_batch)])).abs().max().item()
    model.load_state_dict(saved)
    for m, mode in zip(model.modules(), modes):
        m.training = mode
    return gap


# %% wrong: outer_layers_only
"""Puts the outer layers of a copy in training mode, not those within them."""
import copy

import torch


@torch.no_grad()
def batch_norm_gap(model, x, micro_batch):
    model = copy.deepcopy(model)
    for layer in (model, *model.children()):
        layer.training = True
    outputs = torch.cat([model(part) for part in x.split(micro_batch)])
    return (model(x) - outputs).abs().max().item()


# %% wrong: first_feature
"""Looks at the first output of each sample."""
import copy

import torch


@torch.no_grad()
def batch_norm_gap(model, x, micro_batch):
    model = copy.deepcopy(model).train()
    outputs = torch.cat([model(part) for part in x.split(micro_batch)])
    return (model(x) - outputs).flatten(1)[:, 0].abs().max().item()


# %% wrong: scales_x
"""Scales x in place, by next to nothing."""
import copy

import torch


@torch.no_grad()
def batch_norm_gap(model, x, micro_batch):
    model = copy.deepcopy(model).train()
    x *= 1.000001
    outputs = torch.cat([model(part) for part in x.split(micro_batch)])
    return (model(x) - outputs).abs().max().item()


# %% wrong: equal_pieces
"""Cuts with chunk, whose pieces may be smaller than a micro-batch."""

import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        pieces = [twin(piece) for piece in x.chunk(-(-len(x) // micro_batch))]
        return (twin(x) - torch.cat(pieces)).abs().max().item()


# %% right: running_maximum
"""The largest difference so far, piece by piece, in inference mode."""

import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).train()
    largest = 0.0
    with torch.inference_mode():
        whole = twin(x)
        for start in range(0, len(x), micro_batch):
            here = slice(start, start + micro_batch)
            largest = max(largest, float((whole[here] - twin(x[here])).abs().max()))
    return largest


# %% wrong: one_class_of_norms
"""Puts BatchNorm1d in training mode, and no other batch norm."""
import copy

import torch


def batch_norm_gap(model, x, micro_batch):
    twin = copy.deepcopy(model).eval()
    for module in twin.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.train()
    with torch.no_grad():
        pieces = torch.cat([twin(piece) for piece in x.split(micro_batch)])
        return (twin(x) - pieces).abs().max().item()
