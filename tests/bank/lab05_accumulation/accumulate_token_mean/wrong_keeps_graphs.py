"""Adds up the micro-batches' losses, and calls backward once, at the end."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = int((labels != ignore_index).sum())
    if counted == 0:
        return 0.0
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        total = total + F.cross_entropy(
            model(x).flatten(0, 1), y.flatten(), ignore_index=ignore_index, reduction="sum"
        )
    mean = total / counted
    mean.backward()
    return mean.item()
