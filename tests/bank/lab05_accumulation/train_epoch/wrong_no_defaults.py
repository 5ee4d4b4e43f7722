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
