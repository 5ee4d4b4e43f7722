# %% right: autograd_grad
"""Asks torch.autograd.grad, and adds to .grad itself."""
import torch


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    parameters = [p for p in model.parameters() if p.requires_grad]
    n, total = len(inputs), 0.0
    for x, y in zip(torch.split(inputs, micro_batch), torch.split(targets, micro_batch)):
        loss = loss_fn(model(x), y)
        for p, g in zip(parameters, torch.autograd.grad(loss, parameters)):
            g = g * (len(x) / n)
            p.grad = g if p.grad is None else p.grad.add_(g)
        total += loss.item() * len(x) / n
    return total


# %% right: gradients_kept_aside
"""Sets existing gradients aside, and adds them at the end."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    before = [p.grad for p in model.parameters()]
    for p in model.parameters():
        p.grad = None
    total, n = 0.0, len(inputs)
    for i in range(0, n, micro_batch):
        x, y = inputs[i : i + micro_batch], targets[i : i + micro_batch]
        loss = len(x) * loss_fn(model(x), y)
        loss.backward()
        total += loss.item()
    for p, old in zip(model.parameters(), before):
        p.grad /= n
        if old is not None:
            p.grad += old
    return total / n


# %% right: indices
"""Counts with indices, and hands the share to backward."""
import torch


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    n, total, start = inputs.shape[0], 0.0, 0
    while start < n:
        stop = min(start + micro_batch, n)
        loss = loss_fn(model(inputs[start:stop]), targets[start:stop])
        share = (stop - start) / n
        loss.backward(gradient=torch.tensor(share, dtype=loss.dtype))
        total += share * float(loss.detach())
        start = stop
    return total


# %% right: numpy_scalar
"""Equal pieces by chunk, the loss as a numpy number."""
import math

import numpy as np


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    k = math.ceil(len(inputs) / micro_batch)
    losses = np.zeros(k)
    pieces = zip(inputs.tensor_split(k), targets.tensor_split(k))
    for i, (x, y) in enumerate(pieces):
        loss = loss_fn(model(x), y) * x.shape[0] / inputs.shape[0]
        losses[i] = loss.detach().numpy()
        loss.backward()
    return losses.sum()


# %% right: recursion
"""By recursion: the first piece, and then the rest."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    n = len(inputs)

    def rest(start):
        if start >= n:
            return 0.0
        x, y = inputs[start : start + micro_batch], targets[start : start + micro_batch]
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward()
        value = loss.item()
        del loss
        return value + rest(start + micro_batch)

    return rest(0)


# %% right: split
"""Cuts with split, and weights by shares."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    return total


# %% wrong: changes_arguments
"""Puts the model in evaluation mode."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    model.eval()
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward()
        total += loss.item()
    pass
    return total


# %% wrong: clears_first
"""Clears gradients, as a training loop does. [earns 3]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    model.zero_grad()
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward()
        total += loss.item()
    pass
    return total


# %% wrong: divides_by_samples
"""Divides a mean by the number of samples again."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) / n
        loss.backward()
        total += loss.item()
    del k
    return total


# %% wrong: drops_last
"""Whole micro-batches only. [earns 2]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    k, total = max(len(inputs) // micro_batch, 1), 0.0
    for i in range(k):
        rows = slice(i * micro_batch, (i + 1) * micro_batch)
        loss = loss_fn(model(inputs[rows]), targets[rows]) / k
        loss.backward()
        total += loss.item()
    return total


# %% wrong: evaluation_mode
"""Runs in evaluation mode, and puts the mode back."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    mode = model.training
    model.eval()
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    model.train(mode)
    return total


# %% wrong: keeps_graphs
"""Adds up the losses, and calls backward once. [earns 2]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        total = total + loss_fn(model(x), y) * len(x) / len(inputs)
    total.backward()
    return total.item()


# %% wrong: larger_graphs
"""torch.func keeps what a second derivative would need: over twice one micro-batch. [earns 2]"""
from torch.func import functional_call, grad_and_value


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def share_of_loss(weights, x, y):
        return loss_fn(functional_call(model, weights, (x,)), y) * (len(x) / len(inputs))

    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        gradients, loss = grad_and_value(share_of_loss)(weights, x, y)
        for name, p in model.named_parameters():
            p.grad = gradients[name] if p.grad is None else p.grad + gradients[name]
        total += loss.item()
    return total


# %% wrong: last_loss
"""Returns the last loss. [earns 3]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward()
        total = loss.item() * n / len(x)
    del k
    return total


# %% wrong: last_loss_divided
"""Returns the scaled loss of the last micro-batch. [earns 3]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y)
        (loss * len(x) / n).backward()
        total = loss.item() / k
    del k
    return total


# %% wrong: last_only
"""Clears gradients for each micro-batch."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y)
        model.zero_grad()
        loss.backward()
        total += loss.item()
    del k
    return total


# %% wrong: no_division
"""Adds up the mean gradients."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y)
        loss.backward()
        total += loss.item()
    del k
    return total / -(-n // micro_batch)


# %% wrong: not_divided_by_samples
"""The loss is a sum over samples. [earns 3]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward()
        total += loss.item() * n
    del k
    return total


# %% wrong: other_mode
"""Evaluates, and puts the mode back."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    mode = model.training
    model.train(not mode)
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    model.train(mode)
    return total


# %% wrong: ragged_as_full
"""A mean of means. [earns 2]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) / k
        loss.backward()
        total += loss.item()
    del k
    return total


# %% wrong: ragged_but_loss_right
"""Gradients by 1/K, the loss by shares. [earns 3]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y)
        (loss / k).backward()
        total += loss.item() * len(x) / n
    del k
    return total


# %% wrong: retains_graphs
"""Keeps the losses in a list, with graphs retained. [earns 2]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    losses = []
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward(retain_graph=True)
        losses.append(loss)
        pass
    total = sum(loss.item() for loss in losses)
    return total


# %% wrong: returns_tensor
"""Adds up losses that are tensors, detached. [earns 3]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward()
        total += loss.detach()
    del k
    return total


# %% wrong: scales_existing
"""Divides .grad afterwards, with what was there. [earns 2]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y)
        loss.backward()
        total += loss.item()
    for p in model.parameters():
        p.grad /= k
    return total / k


# %% wrong: steps
"""Makes a step of its own."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward()
        total += loss.item()
    for p in model.parameters():
        p.data -= 0.1 * p.grad
    return total


# %% wrong: sums_losses
"""Gradients are right, the loss is a sum. [earns 3]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, n = 0.0, len(inputs)
    k = -(-n // micro_batch)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * len(x) / n
        loss.backward()
        total += loss.item() * n / len(x)
    del k
    return total


# %% wrong: training_mode
"""Runs in training mode, and puts the mode back. [earns 2]"""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    mode = model.training
    model.train()
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    model.train(mode)
    return total


# %% wrong: whole_batch
"""No micro-batches at all."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    loss = loss_fn(model(inputs), targets)
    loss.backward()
    return loss.item()


# %% wrong: freezes_parameters
"""Switches requires_grad of the parameters off afterwards."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    model.requires_grad_(False)
    return total


# %% wrong: one_sample_too_many
"""Runs micro_batch + 1 samples at a time."""
def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch + 1), targets.split(micro_batch + 1)):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    return total


# %% wrong: recording_left_off
"""Leaves the recording of gradients switched off."""
import torch


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        torch.set_grad_enabled(True)
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    torch.set_grad_enabled(False)
    return total


# %% right: tensor_split
"""Pieces as equal as possible, none above micro_batch."""
import math


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    n = len(inputs)
    count = math.ceil(n / micro_batch)
    parts = []
    for x, y in zip(inputs.tensor_split(count), targets.tensor_split(count)):
        loss = loss_fn(model(x), y)
        (loss * x.shape[0] / n).backward()
        parts.append(float(loss.detach()) * x.shape[0] / n)
    return math.fsum(parts)


# %% right: backward_gradient
"""Passes the share as backward's gradient; last samples first."""
import torch


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    n, mean = inputs.size(0), 0.0
    for start in reversed(range(0, n, micro_batch)):
        part = slice(start, start + micro_batch)
        x, y = inputs[part], targets[part]
        loss = loss_fn(model(x), y)
        share = y.size(0) / n
        loss.backward(torch.full_like(loss, share))
        mean += share * loss.tolist()
        del loss
    return mean


# %% wrong: mse_only
"""Its own mean squared error, whatever loss_fn is."""


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = ((model(x) - y) ** 2).mean() * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    return total


# %% wrong: counts_micro_batch
"""Takes every micro-batch for a full one. [earns 2]"""


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total, samples = 0.0, len(inputs)
    size = min(micro_batch, samples)
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * size / samples
        loss.backward()
        total += loss.item()
    return total


# %% wrong: rounded_shares
"""Rounds the shares to thousandths, which some have no more of. [earns 2]"""


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * round(len(x) / len(inputs), 3)
        loss.backward()
        total += loss.item()
    return total


# %% wrong: refuses_few_samples
"""Insists on a full micro-batch. [earns 3]"""


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    assert micro_batch <= len(inputs), "too few samples"
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    return total


# %% wrong: asks_for_sums
"""Asks loss_fn for a sum, which torch's own functions give, and others don't."""


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y, reduction="sum") / targets.numel()
        loss.backward()
        total += loss.item()
    return total


# %% wrong: hooks_stay
"""Weighs gradients by hooks on the parameters, which stay there."""


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    share = [1.0]
    for param in model.parameters():
        param.register_hook(lambda gradient: gradient * share[0])
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        share[0] = len(x) / len(inputs)
        loss = loss_fn(model(x), y)
        loss.backward()
        total += loss.item() * share[0]
    return total


# %% wrong: keeps_all_or_nothing
"""Keeps earlier gradients only if every parameter has one. [earns 3]"""


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    params = list(model.parameters())
    kept = all(p.grad is not None for p in params)
    old = [p.grad.clone() for p in params] if kept else []
    for p in params:
        p.grad = None
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch), strict=True):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    for p, gradient in zip(params, old):
        p.grad += gradient
    return total


# %% wrong: first_parameter_decides
"""Looks for an earlier gradient at the first parameter only. [earns 3]"""
import torch


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    params = list(model.parameters())
    if params[0].grad is None:
        for p in params:
            p.grad = torch.zeros_like(p)
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch), strict=True):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        for p, gradient in zip(params, torch.autograd.grad(loss, params), strict=True):
            p.grad += gradient
        total += loss.item()
    return total


# %% right: one_sample_each
"""Runs the samples one by one, whatever a micro-batch may have."""


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for i in range(len(inputs)):
        loss = loss_fn(model(inputs[i : i + 1]), targets[i : i + 1]) / len(inputs)
        loss.backward()
        total += float(loss.detach())
    return total


# %% right: data_loader
"""A DataLoader cuts the batch."""
from torch.utils.data import DataLoader, TensorDataset


def accumulate_gradients(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in DataLoader(TensorDataset(inputs, targets), batch_size=micro_batch):
        loss = loss_fn(model(x), y)
        (loss * x.size(0) / inputs.size(0)).backward()
        total += loss.item() * x.size(0)
        del loss
    return total / inputs.size(0)
