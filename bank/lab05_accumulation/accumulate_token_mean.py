# %% right: by_hand
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


# %% right: no_reduction
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


# %% right: skips_uncounted
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


# %% right: sum
"""Sums of token losses over the count of the whole batch."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        loss = F.cross_entropy(
            logits.flatten(0, 1), y.flatten(), ignore_index=ignore_index, reduction="sum"
        )
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


# %% right: weighted_means
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


# %% wrong: changes_arguments
"""Writes the ignored labels over."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        mask = (y != ignore_index).flatten()
        y.masked_fill_(y == ignore_index, 0)
        each = F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none")
        loss = (each * mask).sum() / counted
        loss.backward()
        total += loss.item()
    return total


# %% wrong: clears_first
"""Clears the gradients that were there."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    model.zero_grad()
    if counted == 0:
        return 0.0
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=ignore_index, reduction="sum")
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


# %% wrong: counts_by_default_index
"""Hands ignore_index to the loss, and counts by -100."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != -100).sum().item()
    if counted == 0:
        return 0.0
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=ignore_index, reduction="sum")
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


# %% wrong: counts_ignored_tokens
"""Divides by all tokens."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=ignore_index, reduction="sum")
        loss = loss / labels.numel()
        loss.backward()
        total += loss.item()
    return total


# %% wrong: default_ignore_index
"""Forgets ignore_index in both places."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != -100).sum().item()
    if counted == 0:
        return 0.0
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=-100, reduction="sum")
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


# %% wrong: evaluation_mode
"""Runs in evaluation mode, and puts the mode back."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    mode = model.training
    model.eval()
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


# %% wrong: ignores_default_counts_by_index
"""Hands ignore_index to the count, and not to the loss."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=-100, reduction="sum")
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


# %% wrong: keeps_graphs
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


# %% wrong: mean_of_means
"""The mean of the micro-batches' means."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=ignore_index)
        loss = loss / k
        loss.backward()
        total += loss.item()
    return total


# %% wrong: mean_of_means_of_some
"""The mean of the means that exist."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        own = (y != ignore_index).sum()
        if not own:
            continue
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=ignore_index)
        loss = loss / k
        loss.backward()
        total += loss.item()
    return total


# %% wrong: nan_where_none
"""Divides by zero where no token counts."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    pass
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=ignore_index, reduction="sum")
        loss = loss / (labels != ignore_index).sum()
        loss.backward()
        total += loss.item()
    return total


# %% wrong: no_division
"""Adds up means."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=ignore_index)
        loss.backward()
        total += loss.item()
    return total


# %% wrong: other_mode
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


# %% wrong: returns_tensor
"""Returns a tensor."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=ignore_index, reduction="sum")
        loss = loss / counted
        loss.backward()
        total += loss.detach()
    return total


# %% wrong: shifts_again
"""Shifts labels that are shifted already."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    labels = labels[:, 1:]
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        logits = logits[:, :-1]
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=ignore_index, reduction="sum")
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


# %% wrong: sum_of_tokens
"""Sums, and no division."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=ignore_index, reduction="sum")
        loss.backward()
        total += loss.item()
    return total


# %% wrong: weighted_by_samples
"""Means weighted by samples, as in the exercise before."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    k = -(-len(tokens) // micro_batch)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=ignore_index)
        loss = loss * len(x) / len(tokens)
        loss.backward()
        total += loss.item()
    return total


# %% wrong: whole_batch
"""No micro-batches."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    if (labels == ignore_index).all():
        return 0.0
    loss = F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten(), ignore_index=ignore_index)
    loss.backward()
    return loss.item()


# %% wrong: zero_is_padding_too
"""Takes label 0 for padding, whatever ignore_index says."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    labels = labels.masked_fill(labels == 0, ignore_index)
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        loss = F.cross_entropy(
            model(x).flatten(0, 1), y.flatten(), ignore_index=ignore_index, reduction="sum"
        )
        (loss / counted).backward()
        total += loss.item() / counted
    return total


# %% wrong: stops_at_an_empty_micro_batch
"""Stops at the first micro-batch without a counted token."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        if (y == ignore_index).all():
            break
        loss = F.cross_entropy(
            model(x).flatten(0, 1), y.flatten(), ignore_index=ignore_index, reduction="sum"
        )
        (loss / counted).backward()
        total += loss.item() / counted
    return total


# %% wrong: first_tokens_of_a_row
"""Takes counted tokens for the first of each row."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        first = [(row != ignore_index).sum() for row in y]
        loss = sum(
            F.cross_entropy(logits[:n], row[:n].clamp(min=0), reduction="sum")
            for logits, row, n in zip(model(x), y, first)
        )
        (loss / counted).backward()
        total += loss.item() / counted
    return total


# %% wrong: clears_if_none_counts
"""Clears earlier gradients where no token counts."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        model.zero_grad()
        return 0.0
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        loss = F.cross_entropy(
            model(x).flatten(0, 1), y.flatten(), ignore_index=ignore_index, reduction="sum"
        )
        (loss / counted).backward()
        total += loss.item() / counted
    return total


# %% right: masked_rows
"""Takes the counted logits by a mask, nll_loss of log_softmax."""
import torch
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    mask = labels.ne(ignore_index)
    n = int(mask.count_nonzero())
    if not n:
        return 0.0
    total = 0.0
    for start in range(0, len(tokens), micro_batch):
        rows = slice(start, start + micro_batch)
        here = mask[rows]
        logits = model(tokens[rows])[here]
        loss = F.nll_loss(F.log_softmax(logits, -1), labels[rows][here], reduction="sum") / n
        loss.backward()
        total += loss.item()
    return total


# %% wrong: nan_in_a_micro_batch
"""Right weights, but a mean where no token counts is 0 / 0."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=ignore_index)
        loss = loss * ((y != ignore_index).sum().item() / counted)
        loss.backward()
        total += loss.item()
    return total


# %% wrong: counts_by_shape
"""Remembers the count of tokens for each shape of the labels."""
from torch.nn import functional as F

COUNTS = {}


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    count = COUNTS.setdefault(labels.shape, int((labels != ignore_index).sum()))
    if count == 0:
        return 0.0
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x).flatten(0, 1)
        options = {"ignore_index": ignore_index, "reduction": "sum"}
        loss = F.cross_entropy(logits, y.flatten(), **options) / count
        loss.backward()
        total += loss.item()
    return total


# %% wrong: hooks_stay
"""Divides gradients by hooks on the parameters, which stay there."""

from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = int((labels != ignore_index).sum())
    if not counted:
        return 0.0
    for param in model.parameters():
        param.register_hook(lambda gradient: gradient / counted)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x).flatten(0, 1)
        loss = F.cross_entropy(logits, y.flatten(), ignore_index=ignore_index, reduction="sum")
        loss.backward()
        total += loss.item() / counted
    return total


# %% wrong: keeps_all_or_nothing
"""Keeps earlier gradients only if every parameter has one."""
import torch
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    params = list(model.parameters())
    if any(p.grad is None for p in params):
        for p in params:
            p.grad = torch.zeros_like(p)
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch), strict=True):
        logits = model(x).flatten(0, 1)
        loss = F.cross_entropy(logits, y.flatten(), ignore_index=ignore_index, reduction="sum")
        loss = loss / counted
        for p, gradient in zip(params, torch.autograd.grad(loss, params), strict=True):
            p.grad += gradient
        total += loss.item()
    return total


# %% right: gathered
"""Gathers the labels' log-probabilities, and leaves out micro-batches without a counted token."""


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counts = labels.ne(ignore_index)
    number = int(counts.sum())
    if not number:
        return 0.0
    total = 0.0
    for start in range(0, len(tokens), micro_batch):
        part = slice(start, start + micro_batch)
        count = counts[part]
        if not count.any():
            continue
        places = labels[part].masked_fill(~count, 0)[..., None]
        logs = model(tokens[part]).log_softmax(-1).gather(-1, places)[..., 0]
        loss = -(logs * count).sum() / number
        loss.backward()
        total += loss.item()
    return total


# %% wrong: leaves_out_with_the_uncounted
"""Leaves out a micro-batch if one of its samples has no counted token."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    counts = labels != ignore_index
    if not counts.any():
        return 0.0
    total = 0.0
    pieces = zip(tokens.split(micro_batch), labels.split(micro_batch), counts.split(micro_batch))
    for x, y, counted in pieces:
        if not counted.any(dim=1).all():
            continue
        logits = model(x).flatten(0, 1)
        loss = F.cross_entropy(logits, y.flatten(), ignore_index=ignore_index, reduction="sum")
        loss = loss / counts.sum()
        loss.backward()
        total += loss.item()
    return total


# %% wrong: one_token_is_none
"""Returns 0 for a single counted token, too."""
from torch.nn import functional as F


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    count = int((labels != ignore_index).sum())
    if count <= 1:
        return 0.0
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch)):
        logits = model(x).flatten(0, 1)
        loss = F.cross_entropy(logits, y.flatten(), ignore_index=ignore_index, reduction="sum")
        (loss / count).backward()
        total += loss.item() / count
    return total


# %% right: picked_logits
"""The logsumexp less the logit of the label, summed over the counted tokens by einsum."""
import torch


def accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index=-100):
    keep = labels.ne(ignore_index)
    count = keep.sum().item()
    mean = 0.0
    for first in range(0, len(tokens) if count else 0, micro_batch):
        piece = slice(first, first + micro_batch)
        logits, counted = model(tokens[piece]), keep[piece]
        wanted = labels[piece].masked_fill(~counted, 0).unsqueeze(-1)
        losses = logits.logsumexp(-1) - logits.gather(-1, wanted).squeeze(-1)
        part = torch.einsum("bt,bt->", losses, counted.to(losses.dtype)) / count
        part.backward()
        mean += part.item()
    return mean
