"""Means, each weighted by its share of the counted tokens."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    everything = int((labels != ignore_index).sum())
    value = 0.0
    for start in range(0, len(tokens), micro_batch):
        y = labels[start : start + micro_batch]
        own = int((y != ignore_index).sum())
        if own == 0:
            continue
        logits = model(tokens[start : start + micro_batch])
        mean = F.cross_entropy(logits.transpose(1, 2), y, ignore_index=ignore_index)
        share = own / everything
        (mean * share).backward()
        value += share * mean.item()
    return value
