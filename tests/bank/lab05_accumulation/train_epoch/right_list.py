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
