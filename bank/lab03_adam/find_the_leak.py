# %% right: loop_over_stages
"""One stage after the other; the name of the optimizer is given to the next one."""
from torch.nn import functional as F


def train_in_two_stages(model, make_optimizer, batches):
    losses, half = [], len(batches) // 2
    for lr, stage in ((0.1, batches[:half]), (0.01, batches[half:])):
        optimizer = make_optimizer(lr)
        for x, y in stage:
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses


# %% right: function_for_a_stage
"""A function for a stage: its optimizer goes when it returns."""
import torch


def stage(model, optimizer, batches):
    for x, y in batches:
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.item()


def train_in_two_stages(model, make_optimizer, batches):
    half = len(batches) // 2
    first = list(stage(model, make_optimizer(0.1), batches[:half]))
    return first + list(stage(model, make_optimizer(0.01), batches[half:]))


# %% right: made_when_needed
"""The loop as it was; the second optimizer takes the first one's name when its turn comes."""


def train_in_two_stages(model, make_optimizer, batches):
    losses = []
    optimizer = make_optimizer(lr=0.1)
    for number, (x, y) in enumerate(batches):
        if number == len(batches) // 2:
            optimizer = make_optimizer(lr=0.01)
        loss = ((model(x) - y) ** 2).mean()
        for parameter in model.parameters():
            parameter.grad = None
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% right: deleted
"""Both names stay, and the first one is deleted in time."""
from torch.nn import functional as F


def train_in_two_stages(model, make_optimizer, batches):
    losses = []
    fast, slow = make_optimizer(lr=0.1), make_optimizer(lr=0.01)
    for i, (x, y) in enumerate(batches):
        if i == len(batches) // 2:
            optimizer = slow
            del fast
        elif i < len(batches) // 2:
            optimizer = fast
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return [float(loss) for loss in losses]


# %% wrong: first_optimizer_stays
"""The code as it is given. [earns 1]"""
from torch.nn import functional as F


def train_in_two_stages(model, make_optimizer, batches):
    losses = []
    fast, slow = make_optimizer(lr=0.1), make_optimizer(lr=0.01)
    for i, (x, y) in enumerate(batches):
        optimizer = fast if i < len(batches) // 2 else slow
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


# %% wrong: kept_in_a_list
"""Two loops, but a list still holds both optimizers. [earns 1]"""
from torch.nn import functional as F


def train_in_two_stages(model, make_optimizer, batches):
    losses, half = [], len(batches) // 2
    optimizers = [make_optimizer(0.1), make_optimizer(0.01)]
    for optimizer, stage in zip(optimizers, (batches[:half], batches[half:])):
        for x, y in stage:
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses


# %% wrong: velocity_carried_over
"""Lowers the rate of the one optimizer."""
from torch.nn import functional as F


def train_in_two_stages(model, make_optimizer, batches):
    losses = []
    optimizer = make_optimizer(lr=0.1)
    for i, (x, y) in enumerate(batches):
        if i == len(batches) // 2:
            optimizer.lr = 0.01
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


# %% wrong: optimizer_each_batch
"""Makes the optimizer within the loop."""
from torch.nn import functional as F


def train_in_two_stages(model, make_optimizer, batches):
    losses = []
    for i, (x, y) in enumerate(batches):
        optimizer = make_optimizer(lr=0.1 if i < len(batches) // 2 else 0.01)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


# %% wrong: one_rate
"""Copies the first stage, and forgets to change its rate."""
from torch.nn import functional as F


def train_in_two_stages(model, make_optimizer, batches):
    losses, half = [], len(batches) // 2
    for stage in (batches[:half], batches[half:]):
        optimizer = make_optimizer(0.1)
        for x, y in stage:
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses


# %% wrong: gradients_add_up
"""Drops zero_grad along with the rest."""
from torch.nn import functional as F


def train_in_two_stages(model, make_optimizer, batches):
    losses = []
    optimizer = make_optimizer(lr=0.1)
    for i, (x, y) in enumerate(batches):
        if i == len(batches) // 2:
            optimizer = make_optimizer(lr=0.01)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% wrong: longer_first_stage
"""Gives the odd batch to the first stage."""
from torch.nn import functional as F


def train_in_two_stages(model, make_optimizer, batches):
    losses, half = [], (len(batches) + 1) // 2
    for lr, stage in ((0.1, batches[:half]), (0.01, batches[half:])):
        optimizer = make_optimizer(lr)
        for x, y in stage:
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses


# %% wrong: losses_of_the_second_stage
"""Begins the list anew in the second stage."""
from torch.nn import functional as F


def train_in_two_stages(model, make_optimizer, batches):
    half = len(batches) // 2
    for lr, stage in ((0.1, batches[:half]), (0.01, batches[half:])):
        optimizer, losses = make_optimizer(lr), []
        for x, y in stage:
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses


# %% right: generator
"""A generator that yields the losses of a stage."""
import torch


def stage(model, optimizer, batches):
    for x, y in batches:
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.item()


def train_in_two_stages(model, make_optimizer, batches):
    half = len(batches) // 2
    losses = list(stage(model, make_optimizer(lr=0.1), batches[:half]))
    losses.extend(stage(model, make_optimizer(lr=0.01), batches[half:]))
    return losses


# %% wrong: rates_swapped
"""The slow rate first."""
import torch


def train_in_two_stages(model, make_optimizer, batches):
    losses = []
    half = len(batches) // 2
    for lr, part in ((0.01, batches[:half]), (0.1, batches[half:])):
        optimizer = make_optimizer(lr=lr)
        for x, y in part:
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses


# %% wrong: bound_method
"""A bound method, step = optimizer.step, holds the first optimizer through the second stage. [earns 1]"""
import torch


def train_in_two_stages(model, make_optimizer, batches):
    losses = []
    half = len(batches) // 2
    optimizer = make_optimizer(lr=0.1)
    step = optimizer.step
    for x, y in batches[:half]:
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        step()
        optimizer.zero_grad()
        losses.append(loss.item())
    del optimizer
    optimizer = make_optimizer(lr=0.01)
    for x, y in batches[half:]:
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


# %% wrong: shorter_first_stage
"""The first stage takes one batch less than half of an even number. [earns 1]"""
import torch


def train_in_two_stages(model, make_optimizer, batches):
    losses = []

    def stage(lr, part):
        optimizer = make_optimizer(lr=lr)
        for x, y in part:
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())

    middle = (len(batches) - 1) // 2
    stage(0.1, batches[:middle])
    stage(0.01, batches[middle:])
    return losses


# %% wrong: middle_batch_lost
"""The second stage is as many batches from the end as the first one, and the middle one is lost."""
import torch


def train_in_two_stages(model, make_optimizer, batches):
    losses = []
    half = len(batches) // 2
    for lr, part in ((0.1, batches[:half]), (0.01, batches[-half:])):
        optimizer = make_optimizer(lr=lr)
        for x, y in part:
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses
