# %% right: no_grad
"""Without a graph there is nothing to hold."""
import torch


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    with torch.no_grad():
        for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
            total += loss_fn(model(x), y) * len(x)
    return (total / len(inputs)).item()


# %% right: item
"""The graph of one micro-batch at a time: only its number is kept."""


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        total += loss_fn(model(x), y).item() * len(x)
    return total / len(inputs)


# %% right: inference_mode
"""Decorated, with indices."""
import torch


@torch.inference_mode()
def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    total = torch.zeros(())
    for start in range(0, len(inputs), micro_batch):
        x, y = inputs[start : start + micro_batch], targets[start : start + micro_batch]
        total += loss_fn(model(x), y) * (len(x) / len(inputs))
    return float(total)


# %% right: detach
"""A list of losses without their graphs."""
import torch


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    losses, sizes = [], []
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        losses.append(loss_fn(model(x), y).detach())
        sizes.append(len(x))
    return (torch.stack(losses) @ torch.tensor(sizes, dtype=losses[0].dtype) / sum(sizes)).item()


# %% wrong: graphs_stay
"""The code as it is given. [earns 1]"""


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        total += loss_fn(model(x), y) * len(x)
    return (total / len(inputs)).item()


# %% wrong: detached_at_the_end
"""Detaches the sum when all graphs are there. [earns 1]"""


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        total = total + loss_fn(model(x), y) * len(x)
    return total.detach().item() / len(inputs)


# %% wrong: keeps_outputs
"""The loss is a number, but a list holds the outputs. [earns 1]"""
import torch


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    outputs = [model(x) for x in inputs.split(micro_batch)]
    return loss_fn(torch.cat(outputs), targets).item()


# %% wrong: backward_to_free
"""Frees the graphs by a backward of each one's share."""


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    return total


# %% wrong: backward_of_each_loss
"""Frees the graphs by a backward of each."""


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        loss = loss_fn(model(x), y)
        loss.backward()
        total += loss.item() * len(x)
    return total / len(inputs)


# %% wrong: mode_changed
"""Takes evaluation mode for what frees memory. [earns 1]"""
import torch


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
            total += loss_fn(model(x), y).item() * len(x)
    return total / len(inputs)


# %% wrong: evaluation_mode
"""Validates in evaluation mode, and sets the mode back. [earns 1]"""
import torch


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    training = model.training
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
            total += loss_fn(model(x), y).item() * len(x)
    model.train(training)
    return total / len(inputs)


# %% wrong: gradients_cleared
"""Clears gradients, as before a training step."""
import torch


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    model.zero_grad()
    total = 0.0
    with torch.no_grad():
        for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
            total += loss_fn(model(x), y).item() * len(x)
    return total / len(inputs)


# %% wrong: ragged_as_full
"""A mean of the micro-batches' means. [earns 1]"""
import torch


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    with torch.no_grad():
        losses = [
            loss_fn(model(x), y).item()
            for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch))
        ]
    return sum(losses) / len(losses)


# %% wrong: not_divided
"""Leaves the last division out."""
import torch


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    with torch.no_grad():
        for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
            total += loss_fn(model(x), y).item() * len(x)
    return total


# %% wrong: gradients_off
"""Switches gradients off for everybody, and never on again."""
import torch


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    torch.set_grad_enabled(False)
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        total += loss_fn(model(x), y).item() * len(x)
    return total / len(inputs)


# %% wrong: parameters_frozen
"""Leaves the parameters with requires_grad=False."""


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    model.requires_grad_(False)
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        total += loss_fn(model(x), y).item() * len(x)
    return total / len(inputs)


# %% wrong: outputs_stay
"""The whole batch in one forward, without a graph. [earns 1]"""
import torch


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    with torch.no_grad():
        return loss_fn(model(inputs), targets).item()


# %% wrong: means_not_weighed
"""Adds means, and divides by the number of samples."""


def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        total += loss_fn(model(x), y).item()
    return total / len(inputs)


# %% wrong: own_loss
"""Computes a mean squared error of its own, whatever loss_fn is."""

import torch


@torch.no_grad()
def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    pairs = zip(inputs.split(micro_batch), targets.split(micro_batch))
    return sum((model(x) - y).square().sum().item() for x, y in pairs) / targets.numel()


# %% wrong: asks_for_sums
"""Asks loss_fn for sums, which torch's own functions give, and others don't."""

import torch


@torch.no_grad()
def validation_loss(model, loss_fn, inputs, targets, micro_batch):
    pairs = zip(inputs.split(micro_batch), targets.split(micro_batch))
    return sum(loss_fn(model(x), y, reduction="sum").item() for x, y in pairs) / targets.numel()
