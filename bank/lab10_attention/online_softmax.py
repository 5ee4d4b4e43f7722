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


# %% right: plain
"""Numbers and continue."""

import math

import torch


def online_softmax(blocks):
    m, l = -math.inf, 0.0
    for s in blocks:
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        l = l * math.exp(m - new) + torch.exp(s - new).sum().item()
        m = new
    return m, l


def weighted_sum(blocks):
    m, l, total = -math.inf, 0.0, None
    for s, v in blocks:
        if total is None:
            total = torch.zeros(v.shape[1], dtype=v.dtype)
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        p, r = torch.exp(s - new), math.exp(m - new)
        l, total, m = l * r + p.sum().item(), total * r + p @ v, new
    return total / l if l else total


# %% right: merged_states
"""next() and recursion on states."""

import math

import torch


def merge(a, b):
    m = max(a[0], b[0])
    if m == -math.inf:
        return a
    fa, fb = math.exp(a[0] - m), math.exp(b[0] - m)
    return m, a[1] * fa + b[1] * fb, *(x * fa + y * fb for x, y in zip(a[2:], b[2:]))


def state(s, v=None):
    m = float(s.max())
    e = torch.exp(s - m) if m > -math.inf else torch.zeros_like(s)
    return (m, float(e.sum())) if v is None else (m, float(e.sum()), e @ v)


def online_softmax(blocks):
    found = (-math.inf, 0.0)
    for s in blocks:
        found = merge(found, state(s))
    return found


def weighted_sum(blocks):
    it = iter(blocks)
    found = state(*next(it))
    for s, v in it:
        found = merge(found, state(s, v))
    return found[2] / found[1] if found[1] > 0 else torch.zeros_like(found[2])


# %% right: nan_to_num
"""Tensors throughout, nan_to_num for -inf less -inf."""

import math

import torch


def _step(m, l, s):
    new = torch.maximum(m, s.amax())
    factor = (m - new).nan_to_num(nan=0.0, neginf=-math.inf).exp()
    p = (s - new).nan_to_num(nan=-math.inf, neginf=-math.inf).exp()
    return new, factor, p, l * factor + p.sum()


def online_softmax(blocks):
    m, l = torch.tensor(-math.inf, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)
    for s in blocks:
        m, _, _, l = _step(m, l, s.double())
    return m.item(), l.item()


def weighted_sum(blocks):
    m, l, acc = (
        torch.tensor(-math.inf, dtype=torch.float64),
        torch.tensor(0.0, dtype=torch.float64),
        0,
    )
    for s, v in blocks:
        m, f, p, l = _step(m, l, s.double())
        acc = acc * f + (p.unsqueeze(1) * v).sum(0)
    return acc / l.clamp(min=1e-300)


# %% wrong: len_of_blocks
"""Blocks are taken for a list."""

import math

import torch


def online_softmax(blocks):
    n = len(blocks)
    m, l = -math.inf, 0.0
    for s in blocks:
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        l = l * math.exp(m - new) + torch.exp(s - new).sum().item()
        m = new
    return m, l


def weighted_sum(blocks):
    blocks = blocks if len(blocks) else []
    m, l, total = -math.inf, 0.0, None
    for s, v in blocks:
        if total is None:
            total = torch.zeros(v.shape[1], dtype=v.dtype)
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        p, r = torch.exp(s - new), math.exp(m - new)
        l, total, m = l * r + p.sum().item(), total * r + p @ v, new
    return total / l if l else total


# %% wrong: float32
"""Sums in float32."""

import math

import torch


def online_softmax(blocks):
    m, l = -math.inf, 0.0
    for s in blocks:
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        l = l * math.exp(m - new) + torch.exp((s - new).float()).sum().item()
        m = new
    return m, l


def weighted_sum(blocks):
    m, l, total = -math.inf, 0.0, None
    for s, v in blocks:
        if total is None:
            total = torch.zeros(v.shape[1], dtype=v.dtype)
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        p, r = torch.exp(s - new), math.exp(m - new)
        l, total, m = l * r + p.sum().item(), total * r + p @ v, new
    return total / l if l else total


# %% wrong: minus_1e9
"""-inf is taken for -1e9: a row of -inf is a mean."""

import math

import torch


def online_softmax(blocks):
    m, l = -1e9, 0.0
    for s in blocks:
        new = max(m, s.max().item())
        if False:
            continue
        l = l * math.exp(m - new) + torch.exp(s - new).sum().item()
        m = new
    return m, l


def weighted_sum(blocks):
    m, l, total = -1e9, 0.0, None
    for s, v in blocks:
        if total is None:
            total = torch.zeros(v.shape[1], dtype=v.dtype)
        new = max(m, s.max().item())
        if False:
            continue
        p, r = torch.exp(s - new), math.exp(m - new)
        l, total, m = l * r + p.sum().item(), total * r + p @ v, new
    return total / l if l else total


# %% wrong: blocks_changed
"""Blocks are changed in place."""

import math

import torch


def online_softmax(blocks):
    m, l = -math.inf, 0.0
    for s in blocks:
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        l = l * math.exp(m - new) + s.sub_(new).exp_().sum().item()
        m = new
    return m, l


def weighted_sum(blocks):
    m, l, total = -math.inf, 0.0, None
    for s, v in blocks:
        if total is None:
            total = torch.zeros(v.shape[1], dtype=v.dtype)
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        p, r = torch.exp(s - new), math.exp(m - new)
        l, total, m = l * r + p.sum().item(), total * r + p @ v, new
    return total / l if l else total


# %% wrong: keeps_weights
"""All weights are kept for the end, not the values."""

import math

import torch


def online_softmax(blocks):
    m, l = -math.inf, 0.0
    for s in blocks:
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        l = l * math.exp(m - new) + torch.exp(s - new).sum().item()
        m = new
    return m, l


def weighted_sum(blocks):
    m, l, total = -math.inf, 0.0, None
    kept = []
    for s, v in blocks:
        if total is None:
            total = torch.zeros(v.shape[1], dtype=v.dtype)
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        kept.append(v)
        p, r = torch.exp(s - new), math.exp(m - new)
        l, total, m = l * r + p.sum().item(), total * r + p @ v, new
    return total / l if l else total


# %% wrong: first_block_masked
"""A first block of -inf ends it."""

import math

import torch


def online_softmax(blocks):
    m, l = -math.inf, 0.0
    for s in blocks:
        new = max(m, s.max().item())
        if new == -math.inf:
            break
        l = l * math.exp(m - new) + torch.exp(s - new).sum().item()
        m = new
    return m, l


def weighted_sum(blocks):
    m, l, total = -math.inf, 0.0, None
    for s, v in blocks:
        if total is None:
            total = torch.zeros(v.shape[1], dtype=v.dtype)
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        p, r = torch.exp(s - new), math.exp(m - new)
        l, total, m = l * r + p.sum().item(), total * r + p @ v, new
    return total / l if l else total


# %% wrong: begins_too_high
"""The maximum begins at -1e9: lower scores have no weight."""

import math


def online_softmax(blocks):
    maximum, total = -1e9, 0.0
    for scores in blocks:
        new = max(maximum, scores.max().item())
        total = total * math.exp(maximum - new) + (scores - new).exp().sum().item()
        maximum = new
    return (maximum, total) if total else (-math.inf, 0.0)


def weighted_sum(blocks):
    maximum, total, result = -1e9, 0.0, 0.0
    for scores, values in blocks:
        new = max(maximum, scores.max().item())
        weights, shrink = (scores - new).exp(), math.exp(maximum - new)
        total = total * shrink + weights.sum().item()
        result = result * shrink + weights @ values
        maximum = new
    return result / total if total else result


# %% wrong: scores_kept
"""Only the weighted sum goes block by block; the statistics take the whole row of scores."""

import math

import torch


def online_softmax(blocks):
    scores = torch.cat(list(blocks))
    maximum = scores.max().item()
    return maximum, (scores - maximum).exp().sum().item() if maximum > -math.inf else 0.0


def weighted_sum(blocks):
    log_sum, result = torch.tensor(-math.inf), 0.0
    for scores, values in blocks:
        new = torch.logaddexp(log_sum, scores.logsumexp(0))
        if new == -math.inf:
            result = torch.zeros_like(values[0])
        else:
            result = result * (log_sum - new).exp() + (scores - new).exp() @ values
            log_sum = new
    return result


# %% wrong: scores_as_floats
"""online_softmax keeps all scores as Python's floats."""

def online_softmax(blocks):
    scores = []
    for block in blocks:
        scores += block.tolist()
    maximum = max(scores)
    return maximum, sum(math.exp(s - maximum) for s in scores) if maximum > -math.inf else 0.0


import math

import torch


def weighted_sum(blocks):
    maximum, total, result = -math.inf, 0.0, 0.0
    for scores, values in blocks:
        new = max(maximum, scores.max().item())
        weights = torch.exp(scores - max(new, -1e300))
        shrink = math.exp(maximum - new) if maximum > -math.inf else 0.0
        total = total * shrink + weights.sum().item()
        result = result * shrink + weights @ values
        maximum = new
    return result / total if total else result


# %% wrong: scores_as_numpy
"""online_softmax keeps copies of all scores as arrays."""

import numpy as np


def online_softmax(blocks):
    scores = np.concatenate([np.array(block.tolist()) for block in blocks])
    maximum = float(scores.max())
    return maximum, float(np.exp(scores - maximum).sum()) if maximum > -math.inf else 0.0


import math

import torch


def weighted_sum(blocks):
    maximum, total, result = -math.inf, 0.0, 0.0
    for scores, values in blocks:
        new = max(maximum, scores.max().item())
        weights = torch.exp(scores - max(new, -1e300))
        shrink = math.exp(maximum - new) if maximum > -math.inf else 0.0
        total = total * shrink + weights.sum().item()
        result = result * shrink + weights @ values
        maximum = new
    return result / total if total else result


# %% right: reduce
"""functools.reduce of states, in numpy."""

import functools, math
import numpy as np
import torch

def _merge(state, block):
    m, l, acc = state
    s, v = block
    s = s.numpy()
    top = s.max()
    if top == -np.inf:
        return m, l, acc + np.zeros(v.shape[1])
    p = np.exp(s - top)
    new = max(m, top)
    a, c = math.exp(m - new), math.exp(top - new)
    return new, a * l + c * p.sum(), a * acc + c * (p[None] @ v.numpy())[0]

def online_softmax(blocks):
    with_none = ((s, torch.zeros(len(s), 1, dtype=torch.float64)) for s in blocks)
    m, l, _ = functools.reduce(_merge, with_none, (-math.inf, 0.0, np.zeros(1)))
    return m, l

def weighted_sum(blocks):
    m, l, acc = functools.reduce(_merge, blocks, (-math.inf, 0.0, np.float64(0)))
    return torch.as_tensor(acc / (l or 1.0))


# %% wrong: squeezed
"""A result of width 1 loses its axis."""

import math
import torch

def online_softmax(blocks):
    m, l = -math.inf, 0.0
    for s in blocks:
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        l = l * math.exp(m - new) + torch.exp(s - new).sum().item()
        m = new
    return m, l


def weighted_sum(blocks):
    m, l, acc = -math.inf, 0.0, None
    for s, v in blocks:
        if acc is None:
            acc = torch.zeros(v.shape[1], dtype=v.dtype)
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        p, r = torch.exp(s - new), math.exp(m - new)
        l, acc, m = l * r + p.sum().item(), acc * r + p @ v, new
    return (acc / l if l > 0 else acc).squeeze()


# %% wrong: values_not_rescaled
"""The weighted sum isn't rescaled."""
import math

import torch


def online_softmax(blocks):
    m, l = -math.inf, 0.0
    for s in blocks:
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        l = l * math.exp(m - new) + (s - new).exp().sum().item()
        m = new
    return m, l

def weighted_sum(blocks):
    m, l, total = -math.inf, 0.0, None
    for s, v in blocks:
        if total is None:
            total = torch.zeros_like(v[0])
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        factor = math.exp(m - new)
        p = (s - new).exp()
        l = l * factor + p.sum().item()
        total = total + p @ v
        m = new
    return total / l if l else total


# %% wrong: upside_down
"""Rescales by exp(new - old)."""
import math

import torch


def online_softmax(blocks):
    m, l = -math.inf, 0.0
    for s in blocks:
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        l = l * (math.exp(new - m) if m > -math.inf else 0.0) + (s - new).exp().sum().item()
        m = new
    return m, l

def weighted_sum(blocks):
    m, l, total = -math.inf, 0.0, None
    for s, v in blocks:
        if total is None:
            total = torch.zeros_like(v[0])
        new = max(m, s.max().item())
        if new == -math.inf:
            continue
        factor = (math.exp(new - m) if m > -math.inf else 0.0)
        p = (s - new).exp()
        l = l * factor + p.sum().item()
        total = total * factor + p @ v
        m = new
    return total / l if l else total


# %% right: by_logaddexp
"""Means of blocks, weighted by logaddexp."""
import math

import torch


import numpy as np
def online_softmax(blocks):
    m, logs = -np.inf, -np.inf
    for s in blocks:
        m = max(m, s.max().item())
        logs = np.logaddexp(logs, torch.logsumexp(s.double(), 0).item())
    return m, (float(np.exp(logs - m)) if m > -np.inf else 0.0)
def weighted_sum(blocks):
    logs, mean = -math.inf, 0
    for s, v in blocks:
        here = torch.logsumexp(s, 0).item()
        if here == -math.inf:
            mean = mean + torch.zeros_like(v[0])
            continue
        both = float(np.logaddexp(logs, here))
        mean = mean * math.exp(logs - both) + torch.einsum("n,nw->w", (s - both).exp(), v)
        logs = both
    return mean
