# %% right: gradients_in_forward
"""Both gradients are ready when forward ends."""

import torch


class ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, targets, chunk):
        counted = targets != -100
        dx, dweight, loss = torch.empty_like(x), torch.zeros_like(weight), 0.0
        for first in range(0, len(x), chunk):
            part = slice(first, first + chunk)
            p = (x[part] @ weight.T).log_softmax(-1)
            places = targets[part].clamp(min=0)[:, None]
            loss -= (p.gather(1, places)[:, 0] * counted[part]).sum()
            p.exp_()
            p.scatter_add_(1, places, torch.full_like(p[:, :1], -1.0))
            p *= counted[part, None]
            dx[part] = p @ weight
            dweight += p.T @ x[part]
        ctx.save_for_backward(dx / counted.sum(), dweight / counted.sum())
        return loss / counted.sum()

    @staticmethod
    def backward(ctx, gradient):
        dx, dweight = ctx.saved_tensors
        return gradient * dx, gradient * dweight, None, None


def chunked_cross_entropy(x, weight, targets, chunk):
    return ChunkedLoss.apply(x, weight, targets, chunk)


# %% right: checkpoint
"""Each chunk is checkpointed."""

from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def loss_of(x, weight, targets):
    return F.cross_entropy(x @ weight.T, targets, reduction="sum")


def chunked_cross_entropy(x, weight, targets, chunk):
    total = 0.0
    for first in range(0, len(x), chunk):
        part = slice(first, first + chunk)
        total = total + checkpoint(loss_of, x[part], weight, targets[part], use_reentrant=False)
    return total / (targets != -100).sum()


# %% right: by_backward
"""Each chunk's own backward runs in forward, on detached tensors."""

import torch
from torch.nn import functional as F


class Ready(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, loss, dx, dweight):
        ctx.save_for_backward(dx, dweight)
        return loss.clone()

    @staticmethod
    def backward(ctx, gradient):
        dx, dweight = ctx.saved_tensors
        return gradient * dx, gradient * dweight, None, None, None


def chunked_cross_entropy(x, weight, targets, chunk):
    count = int((targets != -100).sum())
    w, rows, total = weight.detach().requires_grad_(), [], 0.0
    for part, goal in zip(x.detach().split(chunk), targets.split(chunk)):
        part = part.clone().requires_grad_()
        loss = F.cross_entropy(part @ w.T, goal, reduction="sum") / count
        loss.backward()
        rows.append(part.grad)
        total += loss.detach()
    return Ready.apply(x, weight, total, torch.cat(rows), w.grad)


# %% right: logits_again_in_backward
"""Forward keeps the log of each sum, backward computes chunks again."""

import torch


class TwoPasses(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, targets, chunk):
        log_sums = torch.empty_like(x[:, 0])
        loss = x.new_zeros(())
        for first in range(0, len(x), chunk):
            logits = x[first : first + chunk] @ weight.T
            goal = targets[first : first + chunk]
            log_sums[first : first + chunk] = logits.logsumexp(1)
            hit = logits[torch.arange(len(goal)), goal.clamp(min=0)]
            loss += (logits.logsumexp(1) - hit)[goal != -100].sum()
        ctx.save_for_backward(x, weight, targets, log_sums)
        ctx.chunk = chunk
        return loss / (targets != -100).sum()

    @staticmethod
    def backward(ctx, gradient):
        x, weight, targets, log_sums = ctx.saved_tensors
        scale = gradient / (targets != -100).sum()
        dx, dweight = [], torch.zeros_like(weight)
        for first in range(0, len(x), ctx.chunk):
            rows, goal = x[first : first + ctx.chunk], targets[first : first + ctx.chunk]
            p = torch.exp(rows @ weight.T - log_sums[first : first + ctx.chunk, None])
            p[torch.arange(len(goal)), goal.clamp(min=0)] -= 1
            p[goal == -100] = 0
            p *= scale
            dx.append(p @ weight)
            dweight += p.T @ rows
        return torch.cat(dx), dweight, None, None


chunked_cross_entropy = TwoPasses.apply


# %% wrong: sum
"""The loss is a sum."""

from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def loss_of(x, weight, targets):
    return F.cross_entropy(x @ weight.T, targets, reduction="sum")


def chunked_cross_entropy(x, weight, targets, chunk):
    total = 0.0
    for first in range(0, len(x), chunk):
        part = slice(first, first + chunk)
        total = total + checkpoint(loss_of, x[part], weight, targets[part], use_reentrant=False)
    return total


# %% wrong: mean_of_chunks
"""The mean of the chunks' means."""

from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def loss_of(x, weight, targets):
    return F.cross_entropy(x @ weight.T, targets)


def chunked_cross_entropy(x, weight, targets, chunk):
    total = 0.0
    for first in range(0, len(x), chunk):
        part = slice(first, first + chunk)
        total = total + checkpoint(loss_of, x[part], weight, targets[part], use_reentrant=False)
    return total / -(-len(x) // chunk)


# %% wrong: ignored_counted
"""Tokens without a target are counted."""

from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def loss_of(x, weight, targets):
    return F.cross_entropy(x @ weight.T, targets, reduction="sum")


def chunked_cross_entropy(x, weight, targets, chunk):
    total = 0.0
    for first in range(0, len(x), chunk):
        part = slice(first, first + chunk)
        total = total + checkpoint(loss_of, x[part], weight, targets[part], use_reentrant=False)
    return total / len(targets)


# %% wrong: rest_left_out
"""The short chunk at the end is left out."""

from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def loss_of(x, weight, targets):
    return F.cross_entropy(x @ weight.T, targets, reduction="sum")


def chunked_cross_entropy(x, weight, targets, chunk):
    total, end = 0.0, max(len(x) // chunk * chunk, 1)
    x, targets = x[:end], targets[:end]
    for first in range(0, len(x), chunk):
        part = slice(first, first + chunk)
        total = total + checkpoint(loss_of, x[part], weight, targets[part], use_reentrant=False)
    return total / (targets != -100).sum()


# %% wrong: ignored_as_token_0
"""-100 is taken for token 0."""

from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def loss_of(x, weight, targets):
    return F.cross_entropy(x @ weight.T, targets, reduction="sum")


def chunked_cross_entropy(x, weight, targets, chunk):
    total, targets = 0.0, targets.clamp(min=0)
    for first in range(0, len(x), chunk):
        part = slice(first, first + chunk)
        total = total + checkpoint(loss_of, x[part], weight, targets[part], use_reentrant=False)
    return total / (targets != -100).sum()


# %% wrong: overflows
"""exp of logits as they are."""

from torch.utils.checkpoint import checkpoint


def loss_of(x, weight, targets):
    logits = x @ weight.T
    hit = logits.gather(1, targets.clamp(min=0)[:, None])[:, 0]
    return (logits.exp().sum(1).log() - hit)[targets != -100].sum()


def chunked_cross_entropy(x, weight, targets, chunk):
    total = 0.0
    for first in range(0, len(x), chunk):
        part = slice(first, first + chunk)
        total = total + checkpoint(loss_of, x[part], weight, targets[part], use_reentrant=False)
    return total / (targets != -100).sum()


# %% wrong: empty_chunk
"""Means of chunks are put together, and some chunk has none."""

from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def loss_of(x, weight, targets):
    return F.cross_entropy(x @ weight.T, targets)


def chunked_cross_entropy(x, weight, targets, chunk):
    total = 0.0
    for first in range(0, len(x), chunk):
        part = slice(first, first + chunk)
        mean = checkpoint(loss_of, x[part], weight, targets[part], use_reentrant=False)
        total = total + mean * (targets[part] != -100).sum()
    return total / (targets != -100).sum()


# %% wrong: no_gradient
"""weight gets no gradient."""

import torch


class ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, targets, chunk):
        counted = targets != -100
        dx, dweight, loss = torch.empty_like(x), torch.zeros_like(weight), 0.0
        for first in range(0, len(x), chunk):
            part = slice(first, first + chunk)
            p = (x[part] @ weight.T).log_softmax(-1)
            places = targets[part].clamp(min=0)[:, None]
            loss -= (p.gather(1, places)[:, 0] * counted[part]).sum()
            p.exp_()
            p.scatter_add_(1, places, torch.full_like(p[:, :1], -1.0))
            p *= counted[part, None]
            dx[part] = p @ weight
            dweight += p.T @ x[part]
        ctx.save_for_backward(dx / counted.sum(), dweight / counted.sum())
        return loss / counted.sum()

    @staticmethod
    def backward(ctx, gradient):
        dx, dweight = ctx.saved_tensors
        return gradient * dx, None, None, None


def chunked_cross_entropy(x, weight, targets, chunk):
    return ChunkedLoss.apply(x, weight, targets, chunk)


# %% wrong: incoming_gradient
"""The gradient that comes in is not used."""

import torch


class ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, targets, chunk):
        counted = targets != -100
        dx, dweight, loss = torch.empty_like(x), torch.zeros_like(weight), 0.0
        for first in range(0, len(x), chunk):
            part = slice(first, first + chunk)
            p = (x[part] @ weight.T).log_softmax(-1)
            places = targets[part].clamp(min=0)[:, None]
            loss -= (p.gather(1, places)[:, 0] * counted[part]).sum()
            p.exp_()
            p.scatter_add_(1, places, torch.full_like(p[:, :1], -1.0))
            p *= counted[part, None]
            dx[part] = p @ weight
            dweight += p.T @ x[part]
        ctx.save_for_backward(dx / counted.sum(), dweight / counted.sum())
        return loss / counted.sum()

    @staticmethod
    def backward(ctx, gradient):
        dx, dweight = ctx.saved_tensors
        return dx, dweight, None, None


def chunked_cross_entropy(x, weight, targets, chunk):
    return ChunkedLoss.apply(x, weight, targets, chunk)


# %% wrong: all_logits
"""torch's loss of all logits."""

from torch.nn import functional as F


def chunked_cross_entropy(x, weight, targets, chunk):
    return F.cross_entropy(x @ weight.T, targets)


# %% wrong: graph_keeps_chunks
"""Chunks without a checkpoint: their graph keeps all of them."""

from torch.nn import functional as F


def loss_of(x, weight, targets):
    return F.cross_entropy(x @ weight.T, targets, reduction="sum")


def chunked_cross_entropy(x, weight, targets, chunk):
    total = 0.0
    for first in range(0, len(x), chunk):
        part = slice(first, first + chunk)
        total = total + loss_of(x[part], weight, targets[part])
    return total / (targets != -100).sum()


# %% right: gathered
"""Only tokens that count are gathered."""

import math

import torch


class Chunked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, targets, chunk):
        count = (targets != -100).sum()
        dx, dw, loss = torch.zeros_like(x), torch.zeros_like(weight), 0.0
        for a in range(0, len(x), chunk):
            s = slice(a, a + chunk)
            keep = targets[s] != -100
            xs, ts = x[s][keep], targets[s][keep]
            logits = xs @ weight.T
            lse = logits.logsumexp(1)
            loss = loss + (lse - logits.gather(1, ts[:, None])[:, 0]).sum()
            p = torch.exp(logits.sub_(lse[:, None]))
            p[torch.arange(len(ts)), ts] -= 1
            p /= count
            dx[s][keep] = p @ weight if False else dx[s][keep]
            part = torch.zeros_like(x[s])
            part[keep] = p @ weight
            dx[s] = part
            dw += p.T @ xs
        ctx.save_for_backward(dx, dw)
        return loss / count

    @staticmethod
    def backward(ctx, g):
        dx, dw = ctx.saved_tensors
        return g * dx, g * dw, None, None


def chunked_cross_entropy(x, weight, targets, chunk):
    return Chunked.apply(x, weight, targets, chunk)


# %% right: recursive_checkpoint
"""Halves, recursively, each checkpointed."""

import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def part(x, weight, targets):
    return F.cross_entropy(F.linear(x, weight), targets, reduction="sum", ignore_index=-100)


def total(x, weight, targets, chunk):
    if len(x) <= chunk:
        return checkpoint(part, x, weight, targets, use_reentrant=False)
    half = (len(x) // chunk + 1) // 2 * chunk
    return total(x[:half], weight, targets[:half], chunk) + total(
        x[half:], weight, targets[half:], chunk
    )


def chunked_cross_entropy(x, weight, targets, chunk):
    return total(x, weight, targets, chunk) / targets.ne(-100).sum()


# %% right: log_softmax
"""log_softmax and a mask as factor; checkpoint with keyword arguments."""

import torch
import torch.utils.checkpoint


def piece(x, w, t):
    logp = torch.log_softmax(x @ w.mT, dim=-1)
    picked = logp[torch.arange(len(t)), t.clamp(min=0)]
    return -(picked * (t >= 0)).sum()


def chunked_cross_entropy(x, weight, targets, chunk: int):
    n = (targets >= 0).sum().item()
    loss = x.new_zeros(())
    for xs, ts in zip(x.split(chunk), targets.split(chunk)):
        loss = loss + torch.utils.checkpoint.checkpoint(piece, xs, weight, ts, use_reentrant=False)
    return loss / n


# %% wrong: state_shared
"""Gradients are on the class: two losses share them."""

import math

import torch


class Chunked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, targets, chunk):
        count = (targets != -100).sum()
        dx, dw, loss = torch.zeros_like(x), torch.zeros_like(weight), 0.0
        for a in range(0, len(x), chunk):
            s = slice(a, a + chunk)
            keep = targets[s] != -100
            xs, ts = x[s][keep], targets[s][keep]
            logits = xs @ weight.T
            lse = logits.logsumexp(1)
            loss = loss + (lse - logits.gather(1, ts[:, None])[:, 0]).sum()
            p = torch.exp(logits.sub_(lse[:, None]))
            p[torch.arange(len(ts)), ts] -= 1
            p /= count
            dx[s][keep] = p @ weight if False else dx[s][keep]
            part = torch.zeros_like(x[s])
            part[keep] = p @ weight
            dx[s] = part
            dw += p.T @ xs
        Chunked.kept = dx, dw
        return loss / count

    @staticmethod
    def backward(ctx, g):
        dx, dw = Chunked.kept
        return g * dx, g * dw, None, None


def chunked_cross_entropy(x, weight, targets, chunk):
    return Chunked.apply(x, weight, targets, chunk)


# %% wrong: targets_changed
"""Targets of -100 are overwritten by 0."""

import math

import torch


import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


def piece(x, w, t, keep):
    return (F.cross_entropy(x @ w.T, t, reduction="none") * keep).sum()


def chunked_cross_entropy(x, weight, targets, chunk):
    keep = targets != -100
    targets[~keep] = 0
    loss = 0
    for a in range(0, len(x), chunk):
        s = slice(a, a + chunk)
        loss = loss + checkpoint(piece, x[s], weight, targets[s], keep[s], use_reentrant=False)
    return loss / keep.sum()


# %% wrong: gradients_set_in_forward
"""forward runs backward itself, and sets .grad."""

import math

import torch


import torch.nn.functional as F


def chunked_cross_entropy(x, weight, targets, chunk):
    count = (targets != -100).sum()
    total = 0.0
    for a in range(0, len(x), chunk):
        s = slice(a, a + chunk)
        part = F.cross_entropy(x[s] @ weight.T, targets[s], reduction="sum") / count
        part.backward()
        total = total + part.detach()
    return total.requires_grad_()


# %% wrong: float32_inside
"""Gradients in float32."""

import math

import torch


class Chunked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, targets, chunk):
        count = (targets != -100).sum()
        dx, dw, loss = torch.zeros(x.shape), torch.zeros(weight.shape), 0.0
        for a in range(0, len(x), chunk):
            s = slice(a, a + chunk)
            keep = targets[s] != -100
            xs, ts = x[s][keep], targets[s][keep]
            logits = xs @ weight.T
            lse = logits.logsumexp(1)
            loss = loss + (lse - logits.gather(1, ts[:, None])[:, 0]).sum()
            p = torch.exp(logits.sub_(lse[:, None]))
            p[torch.arange(len(ts)), ts] -= 1
            p /= count
            dx[s][keep] = p @ weight if False else dx[s][keep]
            part = torch.zeros_like(x[s])
            part[keep] = p @ weight
            dx[s] = part.float()
            dw += (p.T @ xs).float()
        ctx.save_for_backward(dx, dw)
        return loss / count

    @staticmethod
    def backward(ctx, g):
        dx, dw = ctx.saved_tensors
        return g * dx, g * dw, None, None


def chunked_cross_entropy(x, weight, targets, chunk):
    return Chunked.apply(x, weight, targets, chunk)


# %% wrong: log_probabilities_kept
"""log-probabilities of all chunks are kept."""

import math

import torch


class Chunked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, targets, chunk):
        kept = []
        count = (targets != -100).sum()
        dx, dw, loss = torch.zeros_like(x), torch.zeros_like(weight), 0.0
        for a in range(0, len(x), chunk):
            s = slice(a, a + chunk)
            keep = targets[s] != -100
            xs, ts = x[s][keep], targets[s][keep]
            logits = xs @ weight.T
            lse = logits.logsumexp(1)
            loss = loss + (lse - logits.gather(1, ts[:, None])[:, 0]).sum()
            p = torch.exp(logits.sub_(lse[:, None]))
            p[torch.arange(len(ts)), ts] -= 1
            p /= count
            kept.append(p)
            dx[s][keep] = p @ weight if False else dx[s][keep]
            part = torch.zeros_like(x[s])
            part[keep] = p @ weight
            dx[s] = part
            dw += p.T @ xs
        ctx.save_for_backward(dx, dw)
        return loss / count

    @staticmethod
    def backward(ctx, g):
        dx, dw = ctx.saved_tensors
        return g * dx, g * dw, None, None


def chunked_cross_entropy(x, weight, targets, chunk):
    return Chunked.apply(x, weight, targets, chunk)


# %% wrong: torchs_own_by_data
"""torch's own chunked loss, under a name from data. [earns 0]"""

from functools import reduce

import torch


def chunked_cross_entropy(x, weight, targets, chunk: int):
    own = reduce(getattr, "nn functional linear_cross_entropy".split(), torch)
    options = reduce(getattr, "nn LinearCrossEntropyOptions".split(), torch)
    return own(x, weight, targets, options=options(batch_chunk_size=chunk))


# %% right: logsumexp
"""The log of the sum less the own logit, of F.linear, checkpointed."""

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


def part(x, weight, t):
    logits = F.linear(x, weight)
    own = logits[torch.arange(len(t)), t.clamp(min=0)]
    return torch.where(t == -100, torch.zeros_like(own), logits.logsumexp(-1) - own).sum()


def chunked_cross_entropy(x, weight, targets, chunk: int):
    total = x.new_zeros(())
    for xs, ts in zip(x.split(chunk), targets.split(chunk)):
        total = total + checkpoint(part, xs, weight, ts, use_reentrant=False)
    return total / (targets != -100).sum()
