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
