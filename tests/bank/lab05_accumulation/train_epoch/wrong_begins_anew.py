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
