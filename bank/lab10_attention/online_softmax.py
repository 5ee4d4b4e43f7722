# %% right: skips_what_is_masked
"""A block that leaves the maximum at -inf is passed over."""

import math

import torch


def online_softmax(blocks):
    maximum, total = -math.inf, 0.0
    for scores in blocks:
        new = max(maximum, scores.max().item())
        if new > -math.inf:
            total = total * math.exp(maximum - new) + torch.exp(scores - new).sum().item()
            maximum = new
    return maximum, total


def weighted_sum(blocks):
    maximum, total, result = -math.inf, 0.0, 0.0
    for scores, values in blocks:
        new = max(maximum, scores.max().item())
        if new == -math.inf:
            result = torch.zeros_like(values[0])
            continue
        shrink = math.exp(maximum - new)
        weights = torch.exp(scores - new)
        total = total * shrink + weights.sum().item()
        result = result * shrink + weights @ values
        maximum = new
    return result / total if total else result


# %% right: numpy
"""numpy, with errors off and NaN replaced."""

import numpy as np


def online_softmax(blocks):
    maximum, total = np.float64(-np.inf), np.float64(0)
    for block in blocks:
        scores = block.numpy()
        new = max(maximum, scores.max())
        if np.isneginf(new):
            continue
        total = total * np.exp(maximum - new) + np.exp(scores - new).sum()
        maximum = new
    return maximum, total


def weighted_sum(blocks):
    maximum, total, result = -np.inf, 0.0, None
    for scores, values in blocks:
        s, v = scores.numpy(), values.numpy()
        if result is None:
            result = np.zeros(v.shape[1])
        new = max(maximum, s.max())
        reference = 0.0 if np.isneginf(new) else new
        shrink, weights = np.exp(maximum - reference), np.exp(s - reference)
        total = total * shrink + weights.sum()
        result = result * shrink + weights @ v
        maximum = new
    return result / total if total > 0 else result


# %% right: element_by_element
"""A loop over scores, and lists of numbers."""

import math


def online_softmax(blocks):
    maximum, total = -math.inf, 0.0
    for block in blocks:
        for score in block.tolist():
            if score > maximum:
                total = total * (math.exp(maximum - score) if maximum > -math.inf else 0.0) + 1.0
                maximum = score
            elif score > -math.inf:
                total += math.exp(score - maximum)
    return [maximum, total]


def weighted_sum(blocks):
    maximum, total, result = -math.inf, 0.0, None
    for scores, values in blocks:
        for score, value in zip(scores.tolist(), values):
            if result is None:
                result = [0.0] * len(value)
            if score == -math.inf:
                continue
            new = max(maximum, score)
            shrink, weight = math.exp(maximum - new), math.exp(score - new)
            total = total * shrink + weight
            result = [r * shrink + weight * v for r, v in zip(result, value.tolist())]
            maximum = new
    return [r / total for r in result] if total else result


# %% right: logsumexp
"""The state is the log of the sum, a tensor."""

import torch


def online_softmax(blocks):
    maximum = log_sum = torch.tensor(float("-inf"), dtype=torch.float64)
    for scores in blocks:
        maximum = torch.maximum(maximum, scores.max())
        log_sum = torch.logaddexp(log_sum, scores.logsumexp(0))
    if maximum == float("-inf"):
        return maximum, torch.tensor(0.0)
    return maximum, torch.exp(log_sum - maximum)


def weighted_sum(blocks):
    log_sum, mean = torch.tensor(float("-inf"), dtype=torch.float64), 0.0
    for scores, values in blocks:
        of_block = scores.logsumexp(0)
        new = torch.logaddexp(log_sum, of_block)
        if new == float("-inf"):
            mean = torch.zeros_like(values[0])
            continue
        mean = mean * torch.exp(log_sum - new) + torch.exp(scores - new) @ values
        log_sum = new
    return mean


# %% wrong: not_rescaled
"""What was added before stays as it was."""

import math

import torch


def online_softmax(blocks):
    maximum, total = -math.inf, 0.0
    for scores in blocks:
        new = max(maximum, scores.max().item())
        if new > -math.inf:
            total = total + torch.exp(scores - new).sum().item()
            maximum = new
    return maximum, total


def weighted_sum(blocks):
    maximum, total, result = -math.inf, 0.0, 0.0
    for scores, values in blocks:
        new = max(maximum, scores.max().item())
        if new == -math.inf:
            result = torch.zeros_like(values[0])
            continue
        shrink = 1.0
        weights = torch.exp(scores - new)
        total = total * shrink + weights.sum().item()
        result = result * shrink + weights @ values
        maximum = new
    return result / total if total else result


# %% wrong: not_divided
"""The weighted sum is never divided."""

import math

import torch


def online_softmax(blocks):
    maximum, total = -math.inf, 0.0
    for scores in blocks:
        new = max(maximum, scores.max().item())
        if new > -math.inf:
            total = total * math.exp(maximum - new) + torch.exp(scores - new).sum().item()
            maximum = new
    return maximum, total


def weighted_sum(blocks):
    maximum, total, result = -math.inf, 0.0, 0.0
    for scores, values in blocks:
        new = max(maximum, scores.max().item())
        if new == -math.inf:
            result = torch.zeros_like(values[0])
            continue
        shrink = math.exp(maximum - new)
        weights = torch.exp(scores - new)
        total = total * shrink + weights.sum().item()
        result = result * shrink + weights @ values
        maximum = new
    return result


# %% wrong: naive
"""exp of scores as they are."""

import torch


def online_softmax(blocks):
    maximum, total = float("-inf"), 0.0
    for scores in blocks:
        maximum = max(maximum, scores.max().item())
        total += torch.exp(scores).sum().item()
    return maximum, total


def weighted_sum(blocks):
    total, result = 0.0, 0.0
    for scores, values in blocks:
        weights = torch.exp(scores)
        total += weights.sum()
        result = result + weights @ values
    return result / total


# %% wrong: last_block
"""Only the last block is in the result."""

import torch


def online_softmax(blocks):
    for scores in blocks:
        maximum = scores.max().item()
        total = torch.exp(scores - maximum).sum().item() if maximum > float("-inf") else 0.0
    return maximum, total


def weighted_sum(blocks):
    for scores, values in blocks:
        masked = scores.max() == float("-inf")
        result = torch.zeros_like(values[0]) if masked else torch.softmax(scores, 0) @ values
    return result


# %% wrong: mean_of_blocks
"""Each block counts alike."""

import math

import torch


def online_softmax(blocks):
    maximum, total = -math.inf, 0.0
    for scores in blocks:
        new = max(maximum, scores.max().item())
        if new > -math.inf:
            total = total * math.exp(maximum - new) + torch.exp(scores - new).sum().item()
            maximum = new
    return maximum, total


def weighted_sum(blocks):
    means = []
    for scores, values in blocks:
        masked = scores.max() == -math.inf
        means.append(torch.zeros_like(values[0]) if masked else torch.softmax(scores, 0) @ values)
    return torch.stack(means).mean(0)


# %% wrong: nothing_less_nothing
"""-inf less -inf."""

import math

import torch


def online_softmax(blocks):
    maximum, total = -math.inf, 0.0
    for scores in blocks:
        new = max(maximum, scores.max().item())
        shrink = torch.exp(torch.tensor(maximum, dtype=torch.float64) - new).item()
        total = total * shrink + torch.exp(scores - new).sum().item()
        maximum = new
    return maximum, total


def weighted_sum(blocks):
    maximum, total, result = -math.inf, 0.0, 0.0
    for scores, values in blocks:
        new = max(maximum, scores.max().item())
        shrink = torch.exp(torch.tensor(maximum, dtype=torch.float64) - new).item()
        weights = torch.exp(scores - new)
        total = total * shrink + weights.sum().item()
        result = result * shrink + weights @ values
        maximum = new
    return result / total if total else result


# %% wrong: whole_row
"""All blocks are put together first."""

import torch


def online_softmax(blocks):
    scores = torch.cat(list(blocks))
    maximum = scores.max()
    if maximum == float("-inf"):
        return maximum, 0.0
    return maximum, torch.exp(scores - maximum).sum()


def weighted_sum(blocks):
    scores, values = zip(*blocks)
    scores, values = torch.cat(scores), torch.cat(values)
    if scores.max() == float("-inf"):
        return torch.zeros_like(values[0])
    return torch.softmax(scores, 0) @ values


# %% wrong: begins_at_zero
"""The maximum begins at 0, not at -inf."""

import math

import torch


def online_softmax(blocks):
    maximum, total = 0.0, 0.0
    for scores in blocks:
        new = max(maximum, scores.max().item())
        if new > -math.inf:
            total = total * math.exp(maximum - new) + torch.exp(scores - new).sum().item()
            maximum = new
    return maximum, total


def weighted_sum(blocks):
    maximum, total, result = -math.inf, 0.0, 0.0
    for scores, values in blocks:
        new = max(maximum, scores.max().item())
        if new == -math.inf:
            result = torch.zeros_like(values[0])
            continue
        shrink = math.exp(maximum - new)
        weights = torch.exp(scores - new)
        total = total * shrink + weights.sum().item()
        result = result * shrink + weights @ values
        maximum = new
    return result / total if total else result
