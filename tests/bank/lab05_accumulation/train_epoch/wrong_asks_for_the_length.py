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
