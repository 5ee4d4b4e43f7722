"""Clips and schedules full groups only: the left-overs after the loop are forgotten. [earns 3]"""
import torch


def train_epoch(model, optimizer, loader, accumulation_steps, max_norm=None, scheduler=None):
    group, updates = [], 0
    for batch in loader:
        group.append(batch)
        if len(group) == accumulation_steps:
            for part in group:
                (model(*part) / len(group)).backward()
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()
            if scheduler is not None:
                scheduler.step()
            group, updates = [], updates + 1
    if group:
        for part in group:
            (model(*part) / len(group)).backward()
        optimizer.step()
        optimizer.zero_grad()
        updates += 1
    return updates
