"""Runs in the other mode, and puts the mode back."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    mode = model.training
    model.train(not mode)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        loss = F.cross_entropy(
            logits.flatten(0, 1), y.flatten(), ignore_index=ignore_index, reduction="sum"
        )
        loss = loss / counted
        loss.backward()
        total += loss.item()
    model.train(mode)
    return total
