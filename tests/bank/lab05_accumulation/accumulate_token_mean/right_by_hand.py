"""Log-softmax and a mask, by hand; gradients of zero where none counts."""
import torch


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    n = max(1, int(torch.count_nonzero(labels != ignore_index)))
    total = torch.zeros((), dtype=torch.float64)
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        mask = y != ignore_index
        safe = torch.where(mask, y, torch.zeros_like(y))
        log_p = model(x).log_softmax(-1).gather(-1, safe[..., None])[..., 0]
        loss = -(log_p * mask).sum() / n
        loss.backward()
        total += loss.detach()
    return total.numpy()[()]
