# %% right: item
"""Keeps numbers."""
import torch


def train_low(masters, batches, lr):
    losses = []
    for x, y in batches:
        copies = [master.bfloat16().requires_grad_() for master in masters]
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, copy in zip(masters, copies):
                master -= lr * copy.grad.float()
        losses.append(loss.item())
    return losses


# %% right: detached
"""Keeps tensors, but without their graphs."""
import torch


def train_low(masters, batches, lr):
    losses = []
    for x, y in batches:
        copies = [master.to(torch.bfloat16).requires_grad_() for master in masters]
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, copy in zip(masters, copies):
                master.sub_(copy.grad.float(), alpha=lr)
        losses.append(loss.detach())
    return losses


# %% right: one_set_of_copies
"""One set of copies for all steps, refreshed in place; gradients by torch.autograd.grad."""
import torch


def train_low(masters, batches, lr):
    copies = [master.bfloat16().requires_grad_() for master in masters]
    losses = []
    for x, y in batches:
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        gradients = torch.autograd.grad(loss, copies)
        with torch.no_grad():
            for master, copy, gradient in zip(masters, copies, gradients):
                master -= lr * gradient.float()
                copy.copy_(master)
        losses.append(loss.item())
    return losses


# %% right: updates_all_at_once
"""Gradients and updates of all weights in float32 at once: much, but not more with each step."""
import torch


def train_low(masters, batches, lr):
    losses = []
    for x, y in batches:
        copies = [master.bfloat16().requires_grad_() for master in masters]
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            gradients = [copy.grad.float() for copy in copies]
            updates = [lr * gradient for gradient in gradients]
            for master, update in zip(masters, updates):
                master -= update
        losses.append(loss.item())
        del gradients, updates
    return losses


# %% wrong: copies_of_each_step
"""The code given, as it was. [earns 1]"""
import torch


def train_low(masters, batches, lr):
    losses = []
    for x, y in batches:
        copies = [master.bfloat16().requires_grad_() for master in masters]
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, copy in zip(masters, copies):
                master -= lr * copy.grad.float()
        losses.append(loss)
    return [loss.item() for loss in losses]


# %% wrong: deletes_copies_only
"""Lets go of its own names, while the losses still hold what they named. [earns 1]"""
import torch


def train_low(masters, batches, lr):
    losses = []
    for x, y in batches:
        copies = [master.bfloat16().requires_grad_() for master in masters]
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, copy in zip(masters, copies):
                master -= lr * copy.grad.float()
        losses.append(loss.clone())
        del copies, output, loss, copy
    return losses


# %% wrong: keeps_copies_in_a_list
"""The losses are numbers, but all copies are kept, to look at them later. [earns 1]"""
import torch


def train_low(masters, batches, lr):
    losses, history = [], []
    for x, y in batches:
        copies = [master.bfloat16().requires_grad_() for master in masters]
        history.append(copies)
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, copy in zip(masters, copies):
                master -= lr * copy.grad.float()
        losses.append(loss.item())
    return losses


# %% wrong: runs_in_float32
"""No copies at all."""
import torch


def train_low(masters, batches, lr):
    losses = []
    for x, y in batches:
        leaves = [master.detach().requires_grad_() for master in masters]
        loss = (torch.relu(x @ leaves[0]) @ leaves[1] - y).square().mean()
        gradients = torch.autograd.grad(loss, leaves)
        for master, gradient in zip(masters, gradients):
            master.sub_(gradient, alpha=lr)
        losses.append(loss.item())
    return losses


# %% wrong: masters_stand_still
"""Updates the copies, which the next step makes anew."""
import torch


def train_low(masters, batches, lr):
    losses = []
    for x, y in batches:
        copies = [master.bfloat16().requires_grad_() for master in masters]
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for copy in copies:
                copy -= lr * copy.grad
        losses.append(loss.item())
    return losses


# %% wrong: steps_uphill
"""Adds the gradient."""
import torch


def train_low(masters, batches, lr):
    losses = []
    for x, y in batches:
        copies = [master.bfloat16().requires_grad_() for master in masters]
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, copy in zip(masters, copies):
                master += lr * copy.grad.float()
        losses.append(loss.item())
    return losses


# %% wrong: last_batch_left_out
"""Ends one batch early."""
import torch


def train_low(masters, batches, lr):
    losses = []
    for x, y in batches[: len(batches) - 1]:
        copies = [master.bfloat16().requires_grad_() for master in masters]
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, copy in zip(masters, copies):
                master -= lr * copy.grad.float()
        losses.append(loss.item())
    return losses


# %% wrong: product_in_low
"""Forms lr * grad in bfloat16."""
import torch


def train_low(masters, batches, lr):
    losses = []
    for x, y in batches:
        copies = [master.bfloat16().requires_grad_() for master in masters]
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, low in zip(masters, copies):
                master -= lr * low.grad
        losses.append(loss.item())
    return losses


# %% wrong: masters_replaced
"""Puts new tensors into the list."""
import torch


def train_low(masters, batches, lr):
    losses = []
    for x, y in batches:
        copies = [master.bfloat16().requires_grad_() for master in masters]
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for i, low in enumerate(copies):
                masters[i] = masters[i] - lr * low.grad.float()
        losses.append(loss.item())
    return losses


# %% wrong: copies_made_once
"""The copies are made before the loop."""
import torch


def train_low(masters, batches, lr):
    losses = []
    copies = [master.bfloat16().requires_grad_() for master in masters]
    for x, y in batches:
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, low in zip(masters, copies):
                master -= lr * low.grad.float()
        losses.append(loss.item())
    return losses


# %% wrong: copies_stale
"""The copies are made before the loop; their gradients are set back."""
import torch


def train_low(masters, batches, lr):
    losses = []
    copies = [master.bfloat16().requires_grad_() for master in masters]
    for x, y in batches:
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, low in zip(masters, copies):
                master -= lr * low.grad.float()
                low.grad = None
        losses.append(loss.item())
    return losses


# %% wrong: gradients_add_up
"""One set of copies, refreshed in place; their gradients stay."""
import torch


def train_low(masters, batches, lr):
    losses = []
    copies = [master.bfloat16().requires_grad_() for master in masters]
    for x, y in batches:
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, low in zip(masters, copies):
                master -= lr * low.grad.float()
                low.copy_(master)
        losses.append(loss.item())
    return losses


# %% wrong: batches_changed
"""Takes each batch out of the caller's list. [earns 0]"""


import torch
def train_low(masters, batches, lr):
    losses = []
    while batches:
        x, y = batches.pop(0)
        copies = [m.bfloat16().requires_grad_() for m in masters]
        out = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (out.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for m, c in zip(masters, copies):
                m -= lr * c.grad.float()
        losses.append(loss.item())
    return losses


# %% wrong: targets_overwritten
"""Writes the differences over the targets. [earns 0]"""


import torch
def train_low(masters, batches, lr):
    losses = []
    for x, y in batches:
        copies = [m.bfloat16().requires_grad_() for m in masters]
        out = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        y.sub_(out.detach()).neg_()
        loss = (out.float() - out.detach().float() + y).square().mean()
        loss.backward()
        with torch.no_grad():
            for m, c in zip(masters, copies):
                m -= lr * c.grad.float()
        losses.append(loss.item())
    return losses


# %% wrong: lr_of_the_example
"""Steps with the lr of the lab's example."""

import torch


def train_low(masters, batches, lr):
    losses = []
    for x, y in batches:
        copies = [master.bfloat16().requires_grad_() for master in masters]
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, low in zip(masters, copies):
                master -= 0.3 * low.grad.float()
        losses.append(loss.item())
    return losses
