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
