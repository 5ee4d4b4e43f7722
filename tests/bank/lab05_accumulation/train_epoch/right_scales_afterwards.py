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
