"""One more update at the end, always. [earns 1]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    updates, pending = 0, 0
    batches = list(loader)

    def update():
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()

    whole = len(batches) // accumulation_steps * accumulation_steps
    for i, batch in enumerate(batches):
        count = accumulation_steps if i < whole else len(batches) - whole
        (model(*batch) / count).backward()
        if (i + 1) % accumulation_steps == 0:
            update()
            updates += 1
    if batches:
        update()
        updates += 1
    return updates
