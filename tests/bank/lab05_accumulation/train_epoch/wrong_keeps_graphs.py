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
