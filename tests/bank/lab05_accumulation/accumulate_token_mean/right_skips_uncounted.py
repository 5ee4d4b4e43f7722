"""Leaves a micro-batch in which none counts without a backward, its logits still at hand."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted, mean = int((labels != ignore_index).sum()), 0.0
    for start in range(0, len(tokens), micro_batch):
        wanted = labels[start : start + micro_batch].flatten()
        logits = model(tokens[start : start + micro_batch]).flatten(0, 1)
        sums = F.cross_entropy(logits, wanted, ignore_index=ignore_index, reduction="sum")
        if (wanted == ignore_index).all():
            continue
        (sums / counted).backward()
        mean += sums.item() / counted
    return mean
