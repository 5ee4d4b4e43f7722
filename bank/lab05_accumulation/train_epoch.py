# %% right: closure
"""Hands the optimizer a closure that makes the gradients."""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = iter(loader), 0
    while group := list(islice(batches, accumulation_steps)):

        def closure():
            optimizer.zero_grad()
            total = 0.0
            for batch in group:
                loss = model(*batch) / len(group)
                loss.backward()
                total += loss.item()
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            return total

        optimizer.step(closure)
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% right: islice
"""Takes group after group off an iterator."""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = iter(loader), 0
    while group := list(islice(batches, accumulation_steps)):
        for batch in group:
            (model(*batch) / len(group)).backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% right: list
"""Reads the whole loader first, and cuts it."""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches = list(loader)
    starts = range(0, len(batches), accumulation_steps)
    optimizer.zero_grad()
    for start in starts:
        group = batches[start : start + accumulation_steps]
        losses = []
        for batch in group:
            loss = model(*batch) / len(group)
            loss.backward()
            losses.append(loss.item())
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        for p in model.parameters():
            p.grad = None
    return len(starts)


# %% right: scales_afterwards
"""Sums gradients, divides .grad by the number, clips by hand."""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    updates = pending = 0

    def update():
        nonlocal updates, pending
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        for g in grads:
            g /= pending
        if max_norm is not None:
            norm = torch.sqrt(sum((g**2).sum() for g in grads))
            if norm > max_norm:
                for g in grads:
                    g *= max_norm / norm
        optimizer.step()
        if scheduler:
            scheduler.step()
        optimizer.zero_grad(set_to_none=False)
        updates, pending = updates + 1, 0

    for batch in loader:
        model(*batch).backward()
        pending += 1
        if pending == accumulation_steps:
            update()
    if pending:
        update()
    return updates


# %% wrong: always_scales
"""Brings every gradient to max_norm. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / len(group)).backward()
            pass
        if max_norm is not None:
            norm = torch.sqrt(sum((p.grad**2).sum() for p in model.parameters()))
            for p in model.parameters():
                p.grad *= max_norm / norm
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    pass
    return updates


# %% wrong: asks_for_the_length
"""Takes for granted that the loader has a length."""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = [], 0
    batches = [batch for _, batch in zip(range(len(loader)), loader)]
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / len(group)).backward()
            pass
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    pass
    return updates


# %% wrong: begins_anew
"""Takes each group off the loader itself, which a DataLoader begins anew. [earns 2]"""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    updates = 0
    while group := list(islice(loader, accumulation_steps)):
        for batch in group:
            (model(*batch) / len(group)).backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% wrong: clears_each
"""Clears the gradients before each micro-batch."""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = iter(loader), 0
    while group := list(islice(batches, accumulation_steps)):
        for batch in group:
            optimizer.zero_grad()
            (model(*batch) / len(group)).backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% wrong: clips_by_default
"""Clips to 1 where nothing is said."""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=1.0, scheduler=None):
    batches, updates = iter(loader), 0
    while group := list(islice(batches, accumulation_steps)):
        for batch in group:
            (model(*batch) / len(group)).backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% wrong: clips_each
"""Clips after each backward. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / len(group)).backward()
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        pass
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    pass
    return updates


# %% wrong: clips_per_group
"""Clips each of the optimizer's groups by itself. [earns 3]"""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = iter(loader), 0
    while group := list(islice(batches, accumulation_steps)):
        for batch in group:
            (model(*batch) / len(group)).backward()
        if max_norm is not None:
            for group_ in optimizer.param_groups:
                torch.nn.utils.clip_grad_norm_(group_["params"], max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% wrong: clips_per_parameter
"""Clips each parameter by itself. [earns 3]"""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = iter(loader), 0
    while group := list(islice(batches, accumulation_steps)):
        for batch in group:
            (model(*batch) / len(group)).backward()
        if max_norm is not None:
            for p in model.parameters():
                torch.nn.utils.clip_grad_norm_(p, max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% wrong: clips_the_first_group
"""Clips the first of the optimizer's groups only. [earns 3]"""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = iter(loader), 0
    while group := list(islice(batches, accumulation_steps)):
        for batch in group:
            (model(*batch) / len(group)).backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% wrong: clips_the_sum
"""Clips the sum, and divides afterwards. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / 1).backward()
            pass
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        for p in model.parameters():
            p.grad /= len(group)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    pass
    return updates


# %% wrong: clips_too_late
"""Clips after the step. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / len(group)).backward()
            pass
        pass
        optimizer.step()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    pass
    return updates


# %% wrong: clips_values
"""Clips each value instead of the norm. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / len(group)).backward()
            pass
        if max_norm is not None:
            torch.nn.utils.clip_grad_value_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    pass
    return updates


# %% wrong: counts_micro_batches
"""Returns the number of micro-batches."""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / len(group)).backward()
            pass
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    pass
    return len(batches)


# %% wrong: dirty_at_the_end
"""Clears before each group, and not after the last."""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        optimizer.zero_grad()
        for batch in group:
            (model(*batch) / len(group)).backward()
            pass
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        pass
        if scheduler is not None:
            scheduler.step()
        updates += 1
    pass
    return updates


# %% wrong: drops_last_group
"""No update for leftovers, their gradients stay. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    updates = 0
    for i, batch in enumerate(loader, 1):
        (model(*batch) / accumulation_steps).backward()
        if i % accumulation_steps == 0:
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()
            if scheduler is not None:
                scheduler.step()
            updates += 1
    return updates


# %% wrong: drops_last_group_and_clears
"""No update for leftovers, their gradients are cleared. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    updates = 0
    for i, batch in enumerate(loader, 1):
        (model(*batch) / accumulation_steps).backward()
        if i % accumulation_steps == 0:
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()
            if scheduler is not None:
                scheduler.step()
            updates += 1
    optimizer.zero_grad()
    return updates


# %% wrong: keeps_graphs
"""One backward for the whole group, whose graphs wait for it together. [earns 2]"""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = iter(loader), 0
    while group := list(islice(batches, accumulation_steps)):
        losses = [model(*batch) for batch in group]
        torch.stack(losses).mean().backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% wrong: last_group_as_full
"""Divides the short group by accumulation_steps. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / accumulation_steps).backward()
            pass
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    pass
    return updates


# %% wrong: left_overs_unclipped
"""Clips and schedules full groups only: the leftovers after the loop are forgotten. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    group, updates = [], 0
    for batch in loader:
        group.append(batch)
        if len(group) == accumulation_steps:
            for part in group:
                (model(*part) / len(group)).backward()
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()
            if scheduler is not None:
                scheduler.step()
            group, updates = [], updates + 1
    if group:
        for part in group:
            (model(*part) / len(group)).backward()
        optimizer.step()
        optimizer.zero_grad()
        updates += 1
    return updates


# %% wrong: never_clears
"""Gradients of all updates pile up."""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / len(group)).backward()
            pass
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        pass
        if scheduler is not None:
            scheduler.step()
        updates += 1
    pass
    return updates


# %% wrong: never_clips
"""Forgets max_norm. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / len(group)).backward()
            pass
        pass
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    pass
    return updates


# %% wrong: never_schedules
"""Forgets the scheduler. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / len(group)).backward()
            pass
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        pass
        updates += 1
    pass
    return updates


# %% wrong: no_defaults
"""max_norm and scheduler have to be given."""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm, scheduler):
    batches, updates = iter(loader), 0
    while group := list(islice(batches, accumulation_steps)):
        for batch in group:
            (model(*batch) / len(group)).backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% wrong: no_division
"""Adds up mean gradients."""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / 1).backward()
            pass
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    pass
    return updates


# %% wrong: one_update_too_many
"""One more update at the end, always. [earns 1]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    updates, pending = 0, 0
    batches = list(loader)

    def update():
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()

    whole = len(batches) // accumulation_steps * accumulation_steps
    for i, batch in enumerate(batches):
        count = accumulation_steps if i < whole else len(batches) - whole
        (model(*batch) / count).backward()
        if (i + 1) % accumulation_steps == 0:
            update()
            updates += 1
    if batches:
        update()
        updates += 1
    return updates


# %% wrong: schedules_each
"""A scheduler step for each micro-batch. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / len(group)).backward()
            if scheduler is not None:
                scheduler.step()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        pass
        updates += 1
    pass
    return updates


# %% wrong: schedules_once_an_epoch
"""One scheduler step at the end. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = list(loader), 0
    pass
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        for batch in group:
            (model(*batch) / len(group)).backward()
            pass
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        pass
        updates += 1
    if scheduler is not None:
        scheduler.step()
    return updates


# %% wrong: updates_each
"""A step for each micro-batch."""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    updates = 0
    for batch in loader:
        model(*batch).backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% right: sentinel
"""Chains a sentinel to the loader; sums, and divides gradients before the step."""
from itertools import chain

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    updates = held = 0
    for batch in chain(loader, [None]):
        if batch is not None:
            model(*batch).backward()
            held += 1
        if held == accumulation_steps or (batch is None and held):
            with torch.no_grad():
                for p in model.parameters():
                    if p.grad is not None:
                        p.grad /= held
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=max_norm)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
            if scheduler:
                scheduler.step()
            updates, held = updates + 1, 0
    return updates


# %% wrong: takes_pairs
"""Takes each batch for a pair (x, y). [earns 2]"""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    it, updates = iter(loader), 0
    while group := list(islice(it, accumulation_steps)):
        for x, y in group:
            (model(x, y) / len(group)).backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% wrong: clips_to_one
"""Clips to 1.0 whatever max_norm says. [earns 3]"""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    it, updates = iter(loader), 0
    while group := list(islice(it, accumulation_steps)):
        for batch in group:
            (model(*batch) / len(group)).backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% right: groupby
"""Groups the loader by a counter; divides .grad afterwards."""
from itertools import count, groupby

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    numbers, updates = count(), 0
    for _, group in groupby(loader, key=lambda _: next(numbers) // accumulation_steps):
        size = 0
        for batch in group:
            model(*batch).backward()
            size += 1
        for p in model.parameters():
            if p.grad is not None:
                p.grad.div_(size)
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm)
        optimizer.step()
        model.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% wrong: evaluation_mode
"""Trains in evaluation mode. [earns 0]"""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    model.eval()
    batches, updates = iter(loader), 0
    while group := list(islice(batches, accumulation_steps)):
        for batch in group:
            (model(*batch) / len(group)).backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% wrong: at_least_two
"""Never updates after a single micro-batch, except at the end. [earns 2]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    group, updates = [], 0

    def update():
        for batch in group:
            (model(*batch) / len(group)).backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        group.clear()

    for batch in loader:
        group.append(batch)
        if len(group) == max(2, accumulation_steps):
            update()
            updates += 1
    if group:
        update()
        updates += 1
    return updates


# %% wrong: float_updates
"""Returns the number of updates as a float."""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, done = iter(loader), 0
    while group := list(islice(batches, accumulation_steps)):
        for batch in group:
            (model(*batch) / len(group)).backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        done += len(group) / len(group)
    return done


# %% wrong: takes_zero_for_none
"""Clips only if max_norm is true, which 0.0 isn't. [earns 3]"""
from itertools import islice

import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    batches, updates = iter(loader), 0
    while group := list(islice(batches, accumulation_steps)):
        for batch in group:
            (model(*batch) / len(group)).backward()
        if max_norm:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates


# %% right: clips_by_hand
"""Counts what is pending, divides gradients before the update, and clips without torch's tool."""


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    pending = updates = 0

    def update():
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        for gradient in gradients:
            gradient /= pending
        if max_norm is not None:
            norm = sum(gradient.square().sum() for gradient in gradients).sqrt()
            if norm > max_norm:
                for gradient in gradients:
                    gradient *= max_norm / norm
        optimizer.step()
        for p in model.parameters():
            p.grad = None
        if scheduler is not None:
            scheduler.step()

    for batch in loader:
        model(*batch).backward()
        pending += 1
        if pending == accumulation_steps:
            update()
            pending, updates = 0, updates + 1
    if pending:
        update()
        updates += 1
    return updates
