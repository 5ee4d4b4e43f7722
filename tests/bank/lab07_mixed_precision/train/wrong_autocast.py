"""torch.autocast does the work."""

import torch


def train(model, batches, precision, lr=0.1):
    losses = []
    for batch in batches:
        with torch.autocast("cpu", getattr(torch, precision), enabled=precision != "float32"):
            loss = model(*batch)
        loss.backward()
        losses.append(loss.item())
        with torch.no_grad():
            for p in model.parameters():
                p -= lr * p.grad
                p.grad = None
    return losses
