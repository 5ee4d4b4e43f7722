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
