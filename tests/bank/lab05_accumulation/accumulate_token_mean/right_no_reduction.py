"""Losses of all tokens, ignored ones cut out."""
import torch


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    keep = labels != ignore_index
    total = 0.0
    for i in range(0, tokens.shape[0], micro_batch):
        rows = slice(i, i + micro_batch)
        if not keep[rows].any():
            continue
        logits = model(tokens[rows])[keep[rows]]
        each = torch.nn.functional.cross_entropy(logits, labels[rows][keep[rows]], reduction="none")
        loss = each.sum() / keep.sum()
        loss.backward()
        total += loss.item()
    return total
