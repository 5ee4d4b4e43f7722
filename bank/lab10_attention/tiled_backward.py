# %% right: rows_and_columns
"""Blocks of rows and columns, as in forward."""

import math

import torch


def slices(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def scores_of(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        i = torch.arange(rows.start, rows.stop)[:, None]
        scores = scores.masked_fill(torch.arange(columns.start, columns.stop) > i, -math.inf)
    return scores


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
        for rows in slices(q.shape[-2], block):
            maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
            for columns in slices(q.shape[-2], block):
                if causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, causal)
                new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
                total = total * shrink + weights.sum(-1, keepdim=True)
                result = result * shrink + weights @ v[..., columns, :]
                maximum = new
            output[..., rows, :] = result / total
            log_sum[..., rows, :] = maximum + torch.log(total)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in slices(q.shape[-2], ctx.block):
            for columns in slices(q.shape[-2], ctx.block):
                if ctx.causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% right: blocks_of_columns
"""All rows at once, against one block of columns after another."""

import torch


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def scores(q, k, first, block, causal):
        part = k[:, :, first : first + block]
        scores = q @ part.transpose(-1, -2) * q.shape[-1] ** -0.5
        if causal:
            later = torch.arange(first, first + part.shape[2]) > torch.arange(q.shape[2])[:, None]
            scores.masked_fill_(later, float("-inf"))
        return scores

    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        log_sum = torch.full_like(q[..., :1], float("-inf"))
        output = torch.zeros_like(q)
        for first in range(0, q.shape[2], block):
            scores = TiledAttention.scores(q, k, first, block, causal)
            new = torch.logaddexp(log_sum, scores.logsumexp(-1, keepdim=True))
            output *= torch.exp(log_sum - new)
            output += scores.sub_(new).exp_() @ v[:, :, first : first + block]
            log_sum = new
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.options = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        block, causal = ctx.options
        row_sums = torch.einsum("bhid,bhid->bhi", gradient, output)[..., None]
        dq, of_keys, of_values = torch.zeros_like(q), [], []
        for first in range(0, q.shape[2], block):
            keys, values = k[:, :, first : first + block], v[:, :, first : first + block]
            p = TiledAttention.scores(q, k, first, block, causal).sub_(log_sum).exp_()
            of_values.append(p.transpose(-1, -2) @ gradient)
            p *= gradient @ values.transpose(-1, -2) - row_sums
            p *= q.shape[-1] ** -0.5
            dq += p @ keys
            of_keys.append(p.transpose(-1, -2) @ q)
        return dq, torch.cat(of_keys, 2), torch.cat(of_values, 2), None, None


# %% right: nothing_but_inputs
"""Output and log of the sums are computed again in backward."""

import math

import torch


def slices(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def scores_of(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        i = torch.arange(rows.start, rows.stop)[:, None]
        scores = scores.masked_fill(torch.arange(columns.start, columns.stop) > i, -math.inf)
    return scores


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def run(q, k, v, block, causal):
        output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
        for rows in slices(q.shape[-2], block):
            maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
            for columns in slices(q.shape[-2], block):
                if causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, causal)
                new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
                total = total * shrink + weights.sum(-1, keepdim=True)
                result = result * shrink + weights @ v[..., columns, :]
                maximum = new
            output[..., rows, :] = result / total
            log_sum[..., rows, :] = maximum + torch.log(total)
        return output, log_sum

    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        ctx.save_for_backward(q, k, v)
        ctx.block, ctx.causal = block, causal
        return TiledAttention.run(q, k, v, block, causal)[0]

    @staticmethod
    def backward(ctx, gradient):
        q, k, v = ctx.saved_tensors
        output, log_sum = TiledAttention.run(q, k, v, ctx.block, ctx.causal)
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in slices(q.shape[-2], ctx.block):
            for columns in slices(q.shape[-2], ctx.block):
                if ctx.causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% right: row_by_row_sums
"""D is P times dP, summed up block by block; columns are the outer loop."""

import math

import torch


def slices(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def scores_of(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        i = torch.arange(rows.start, rows.stop)[:, None]
        scores = scores.masked_fill(torch.arange(columns.start, columns.stop) > i, -math.inf)
    return scores


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
        for rows in slices(q.shape[-2], block):
            maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
            for columns in slices(q.shape[-2], block):
                if causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, causal)
                new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
                total = total * shrink + weights.sum(-1, keepdim=True)
                result = result * shrink + weights @ v[..., columns, :]
                maximum = new
            output[..., rows, :] = result / total
            log_sum[..., rows, :] = maximum + torch.log(total)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = torch.zeros_like(log_sum)
        for rows in slices(q.shape[-2], ctx.block):
            for columns in slices(q.shape[-2], ctx.block):
                p = torch.exp(scores_of(q, k, rows, columns, ctx.causal) - log_sum[..., rows, :])
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                row_sums[..., rows, :] += (p * dp).sum(-1, keepdim=True)
        for columns in slices(q.shape[-2], ctx.block):
            for rows in slices(q.shape[-2], ctx.block):
                scores = scores_of(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% wrong: no_row_sum
"""Softmax's derivative without its second term."""

import math

import torch


def slices(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def scores_of(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        i = torch.arange(rows.start, rows.stop)[:, None]
        scores = scores.masked_fill(torch.arange(columns.start, columns.stop) > i, -math.inf)
    return scores


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
        for rows in slices(q.shape[-2], block):
            maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
            for columns in slices(q.shape[-2], block):
                if causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, causal)
                new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
                total = total * shrink + weights.sum(-1, keepdim=True)
                result = result * shrink + weights @ v[..., columns, :]
                maximum = new
            output[..., rows, :] = result / total
            log_sum[..., rows, :] = maximum + torch.log(total)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in slices(q.shape[-2], ctx.block):
            for columns in slices(q.shape[-2], ctx.block):
                if ctx.causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * dp / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% wrong: scale_forgotten
"""The gradient of scores is not scaled."""

import math

import torch


def slices(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def scores_of(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        i = torch.arange(rows.start, rows.stop)[:, None]
        scores = scores.masked_fill(torch.arange(columns.start, columns.stop) > i, -math.inf)
    return scores


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
        for rows in slices(q.shape[-2], block):
            maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
            for columns in slices(q.shape[-2], block):
                if causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, causal)
                new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
                total = total * shrink + weights.sum(-1, keepdim=True)
                result = result * shrink + weights @ v[..., columns, :]
                maximum = new
            output[..., rows, :] = result / total
            log_sum[..., rows, :] = maximum + torch.log(total)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in slices(q.shape[-2], ctx.block):
            for columns in slices(q.shape[-2], ctx.block):
                if ctx.causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% wrong: mask_forgotten
"""Backward knows no mask."""

import math

import torch


def slices(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def scores_of(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        i = torch.arange(rows.start, rows.stop)[:, None]
        scores = scores.masked_fill(torch.arange(columns.start, columns.stop) > i, -math.inf)
    return scores


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
        for rows in slices(q.shape[-2], block):
            maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
            for columns in slices(q.shape[-2], block):
                if causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, causal)
                new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
                total = total * shrink + weights.sum(-1, keepdim=True)
                result = result * shrink + weights @ v[..., columns, :]
                maximum = new
            output[..., rows, :] = result / total
            log_sum[..., rows, :] = maximum + torch.log(total)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in slices(q.shape[-2], ctx.block):
            for columns in slices(q.shape[-2], ctx.block):
                scores = scores_of(q, k, rows, columns, False)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% wrong: keys_and_values_swapped
"""Gradients come back in another order."""

import math

import torch


def slices(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def scores_of(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        i = torch.arange(rows.start, rows.stop)[:, None]
        scores = scores.masked_fill(torch.arange(columns.start, columns.stop) > i, -math.inf)
    return scores


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
        for rows in slices(q.shape[-2], block):
            maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
            for columns in slices(q.shape[-2], block):
                if causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, causal)
                new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
                total = total * shrink + weights.sum(-1, keepdim=True)
                result = result * shrink + weights @ v[..., columns, :]
                maximum = new
            output[..., rows, :] = result / total
            log_sum[..., rows, :] = maximum + torch.log(total)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in slices(q.shape[-2], ctx.block):
            for columns in slices(q.shape[-2], ctx.block):
                if ctx.causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dv, dk, None, None


# %% wrong: another_output
"""The output is not divided by the sums."""

import math

import torch


def slices(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def scores_of(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        i = torch.arange(rows.start, rows.stop)[:, None]
        scores = scores.masked_fill(torch.arange(columns.start, columns.stop) > i, -math.inf)
    return scores


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
        for rows in slices(q.shape[-2], block):
            maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
            for columns in slices(q.shape[-2], block):
                if causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, causal)
                new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
                total = total * shrink + weights.sum(-1, keepdim=True)
                result = result * shrink + weights @ v[..., columns, :]
                maximum = new
            output[..., rows, :] = result
            log_sum[..., rows, :] = maximum + torch.log(total)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in slices(q.shape[-2], ctx.block):
            for columns in slices(q.shape[-2], ctx.block):
                if ctx.causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% wrong: no_gradient
"""v gets no gradient."""

import math

import torch


def slices(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def scores_of(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        i = torch.arange(rows.start, rows.stop)[:, None]
        scores = scores.masked_fill(torch.arange(columns.start, columns.stop) > i, -math.inf)
    return scores


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
        for rows in slices(q.shape[-2], block):
            maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
            for columns in slices(q.shape[-2], block):
                if causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, causal)
                new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
                total = total * shrink + weights.sum(-1, keepdim=True)
                result = result * shrink + weights @ v[..., columns, :]
                maximum = new
            output[..., rows, :] = result / total
            log_sum[..., rows, :] = maximum + torch.log(total)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in slices(q.shape[-2], ctx.block):
            for columns in slices(q.shape[-2], ctx.block):
                if ctx.causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, None, None, None


# %% wrong: keeps_probabilities
"""Autograd watches plain attention. [earns 3]"""

import math

import torch


class TiledAttention:
    @staticmethod
    def apply(q, k, v, block, causal):
        parts = []
        for start in range(0, q.shape[-2], block):
            scores = q[..., start : start + block, :] @ k.mT / math.sqrt(q.shape[-1])
            if causal:
                i = torch.arange(start, start + scores.shape[-2])[:, None]
                scores = scores.masked_fill(torch.arange(q.shape[-2]) > i, -math.inf)
            parts.append(scores.softmax(-1) @ v)
        return torch.cat(parts, -2)


# %% wrong: several_numbers_a_row
"""Maximum and sum are kept, two numbers per row. [earns 4]"""

import math

import torch


def slices(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def scores_of(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        i = torch.arange(rows.start, rows.stop)[:, None]
        scores = scores.masked_fill(torch.arange(columns.start, columns.stop) > i, -math.inf)
    return scores


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, sums = torch.empty_like(q), torch.empty_like(q[..., :1])
        maxima = torch.empty_like(sums)
        for rows in slices(q.shape[-2], block):
            maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
            for columns in slices(q.shape[-2], block):
                if causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, causal)
                new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
                total = total * shrink + weights.sum(-1, keepdim=True)
                result = result * shrink + weights @ v[..., columns, :]
                maximum = new
            output[..., rows, :] = result / total
            maxima[..., rows, :], sums[..., rows, :] = maximum, total
        ctx.save_for_backward(q, k, v, output, maxima, sums)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, maxima, sums = ctx.saved_tensors
        log_sum = maxima + torch.log(sums)
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in slices(q.shape[-2], ctx.block):
            for columns in slices(q.shape[-2], ctx.block):
                if ctx.causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% wrong: keeps_copies
"""Copies of q, k and v are kept. [earns 4]"""

import math

import torch


def slices(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def scores_of(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        i = torch.arange(rows.start, rows.stop)[:, None]
        scores = scores.masked_fill(torch.arange(columns.start, columns.stop) > i, -math.inf)
    return scores


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
        for rows in slices(q.shape[-2], block):
            maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
            for columns in slices(q.shape[-2], block):
                if causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, causal)
                new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
                total = total * shrink + weights.sum(-1, keepdim=True)
                result = result * shrink + weights @ v[..., columns, :]
                maximum = new
            output[..., rows, :] = result / total
            log_sum[..., rows, :] = maximum + torch.log(total)
        ctx.save_for_backward(q.clone(), k.clone(), v.clone(), output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in slices(q.shape[-2], ctx.block):
            for columns in slices(q.shape[-2], ctx.block):
                if ctx.causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% wrong: whole_matrix
"""Backward computes all probabilities at once. [earns 4]"""

import math

import torch


def slices(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def scores_of(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        i = torch.arange(rows.start, rows.stop)[:, None]
        scores = scores.masked_fill(torch.arange(columns.start, columns.stop) > i, -math.inf)
    return scores


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
        for rows in slices(q.shape[-2], block):
            maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
            for columns in slices(q.shape[-2], block):
                if causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, causal)
                new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
                total = total * shrink + weights.sum(-1, keepdim=True)
                result = result * shrink + weights @ v[..., columns, :]
                maximum = new
            output[..., rows, :] = result / total
            log_sum[..., rows, :] = maximum + torch.log(total)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in slices(q.shape[-2], q.shape[-2]):
            for columns in slices(q.shape[-2], q.shape[-2]):
                scores = scores_of(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% wrong: one_block_only
"""Columns behind a row's own block are never visited. [earns 2]"""

import math

import torch


def slices(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def scores_of(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        i = torch.arange(rows.start, rows.stop)[:, None]
        scores = scores.masked_fill(torch.arange(columns.start, columns.stop) > i, -math.inf)
    return scores


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
        for rows in slices(q.shape[-2], block):
            maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
            for columns in slices(q.shape[-2], block):
                if causal and columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, causal)
                new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
                total = total * shrink + weights.sum(-1, keepdim=True)
                result = result * shrink + weights @ v[..., columns, :]
                maximum = new
            output[..., rows, :] = result / total
            log_sum[..., rows, :] = maximum + torch.log(total)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in slices(q.shape[-2], ctx.block):
            for columns in slices(q.shape[-2], ctx.block):
                if columns.start > rows.start:
                    break
                scores = scores_of(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% right: plain
"""As described."""

import math

import torch


def blocks(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        of_rows = torch.arange(rows.start, rows.stop)
        of_columns = torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(of_columns > of_rows[:, None], -math.inf)
    return scores


def tiled_forward(q, k, v, block, causal):
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        m = torch.full_like(q[..., rows, :1], -math.inf)
        l = torch.zeros_like(m)
        total = torch.zeros_like(q[..., rows, :])
        for columns in blocks(k.shape[-2], block):
            s = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, r = torch.exp(s - new), torch.exp(m - new)
            l = l * r + p.sum(-1, keepdim=True)
            total = total * r + p @ v[..., columns, :]
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log()
    return output, log_sum


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = tiled_forward(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        delta = (gradient * output).sum(-1, keepdim=True)
        root = math.sqrt(q.shape[-1])
        for rows in blocks(q.shape[-2], ctx.block):
            for columns in blocks(q.shape[-2], ctx.block):
                p = torch.exp(block_scores(q, k, rows, columns, ctx.causal) - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                ds = p * (gradient[..., rows, :] @ v[..., columns, :].mT - delta[..., rows, :])
                dq[..., rows, :] += ds @ k[..., columns, :] / root
                dk[..., columns, :] += ds.mT @ q[..., rows, :] / root
        return dq, dk, dv, None, None


# %% right: columns_outer
"""Columns outside; skips masked blocks; in place."""

import math

import torch


def blocks(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        of_rows = torch.arange(rows.start, rows.stop)
        of_columns = torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(of_columns > of_rows[:, None], -math.inf)
    return scores


def tiled_forward(q, k, v, block, causal):
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        m = torch.full_like(q[..., rows, :1], -math.inf)
        l = torch.zeros_like(m)
        total = torch.zeros_like(q[..., rows, :])
        for columns in blocks(k.shape[-2], block):
            s = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, r = torch.exp(s - new), torch.exp(m - new)
            l = l * r + p.sum(-1, keepdim=True)
            total = total * r + p @ v[..., columns, :]
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log()
    return output, log_sum


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = tiled_forward(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        delta = (gradient * output).sum(-1, keepdim=True)
        root = math.sqrt(q.shape[-1])
        for columns in blocks(q.shape[-2], ctx.block):
            for rows in blocks(q.shape[-2], ctx.block):
                if ctx.causal and columns.start >= rows.stop:
                    continue
                p = torch.exp(block_scores(q, k, rows, columns, ctx.causal) - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                ds = p * (gradient[..., rows, :] @ v[..., columns, :].mT - delta[..., rows, :])
                dq[..., rows, :] += ds @ k[..., columns, :] / root
                dk[..., columns, :] += ds.mT @ q[..., rows, :] / root
        return dq, dk, dv, None, None


# %% right: by_split
"""einsum, and autograd of one block."""

import math

import torch


def blocks(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        of_rows = torch.arange(rows.start, rows.stop)
        of_columns = torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(of_columns > of_rows[:, None], -math.inf)
    return scores


def tiled_forward(q, k, v, block, causal):
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        m = torch.full_like(q[..., rows, :1], -math.inf)
        l = torch.zeros_like(m)
        total = torch.zeros_like(q[..., rows, :])
        for columns in blocks(k.shape[-2], block):
            s = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, r = torch.exp(s - new), torch.exp(m - new)
            l = l * r + p.sum(-1, keepdim=True)
            total = total * r + p @ v[..., columns, :]
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log()
    return output, log_sum


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        out, ctx.log_sum = tiled_forward(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, out)
        ctx.options = block, causal
        return out

    @staticmethod
    def backward(ctx, do):
        q, k, v, out = ctx.saved_tensors
        block, causal = ctx.options
        parts = blocks(q.size(-2), block)
        c = 1 / math.sqrt(q.size(-1))
        dq, dk, dv = map(torch.zeros_like, (q, k, v))
        d = torch.einsum("bhnd,bhnd->bhn", do, out).unsqueeze(-1)
        for i in parts:
            for j in parts:
                p = (block_scores(q, k, i, j, causal) - ctx.log_sum[:, :, i]).exp()
                dv[:, :, j].add_(torch.einsum("bhij,bhid->bhjd", p, do[:, :, i]))
                p.mul_(torch.einsum("bhid,bhjd->bhij", do[:, :, i], v[:, :, j]) - d[:, :, i]).mul_(
                    c
                )
                dq[:, :, i].add_(torch.einsum("bhij,bhjd->bhid", p, k[:, :, j]))
                dk[:, :, j].add_(torch.einsum("bhij,bhid->bhjd", p, q[:, :, i]))
        return dq, dk, dv, None, None


# %% wrong: state_shared
"""What backward needs is on the class: the last call's. [earns 1]"""

import math

import torch


def blocks(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        of_rows = torch.arange(rows.start, rows.stop)
        of_columns = torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(of_columns > of_rows[:, None], -math.inf)
    return scores


def tiled_forward(q, k, v, block, causal):
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        m = torch.full_like(q[..., rows, :1], -math.inf)
        l = torch.zeros_like(m)
        total = torch.zeros_like(q[..., rows, :])
        for columns in blocks(k.shape[-2], block):
            s = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, r = torch.exp(s - new), torch.exp(m - new)
            l = l * r + p.sum(-1, keepdim=True)
            total = total * r + p @ v[..., columns, :]
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log()
    return output, log_sum


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = tiled_forward(q, k, v, block, causal)
        TiledAttention.kept = q, k, v, output, log_sum
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = TiledAttention.kept
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        delta = (gradient * output).sum(-1, keepdim=True)
        root = math.sqrt(q.shape[-1])
        for rows in blocks(q.shape[-2], ctx.block):
            for columns in blocks(q.shape[-2], ctx.block):
                p = torch.exp(block_scores(q, k, rows, columns, ctx.causal) - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                ds = p * (gradient[..., rows, :] @ v[..., columns, :].mT - delta[..., rows, :])
                dq[..., rows, :] += ds @ k[..., columns, :] / root
                dk[..., columns, :] += ds.mT @ q[..., rows, :] / root
        return dq, dk, dv, None, None


# %% wrong: options_on_the_class
"""block and causal are on the class."""

import math

import torch


def blocks(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        of_rows = torch.arange(rows.start, rows.stop)
        of_columns = torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(of_columns > of_rows[:, None], -math.inf)
    return scores


def tiled_forward(q, k, v, block, causal):
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        m = torch.full_like(q[..., rows, :1], -math.inf)
        l = torch.zeros_like(m)
        total = torch.zeros_like(q[..., rows, :])
        for columns in blocks(k.shape[-2], block):
            s = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, r = torch.exp(s - new), torch.exp(m - new)
            l = l * r + p.sum(-1, keepdim=True)
            total = total * r + p @ v[..., columns, :]
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log()
    return output, log_sum


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = tiled_forward(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, output, log_sum)
        TiledAttention.block, TiledAttention.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        delta = (gradient * output).sum(-1, keepdim=True)
        root = math.sqrt(q.shape[-1])
        for rows in blocks(q.shape[-2], ctx.block):
            for columns in blocks(q.shape[-2], ctx.block):
                p = torch.exp(block_scores(q, k, rows, columns, ctx.causal) - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                ds = p * (gradient[..., rows, :] @ v[..., columns, :].mT - delta[..., rows, :])
                dq[..., rows, :] += ds @ k[..., columns, :] / root
                dk[..., columns, :] += ds.mT @ q[..., rows, :] / root
        return dq, dk, dv, None, None


# %% wrong: gradient_assigned
"""Blocks' parts are assigned to dk and dv, not added."""

import math

import torch


def blocks(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        of_rows = torch.arange(rows.start, rows.stop)
        of_columns = torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(of_columns > of_rows[:, None], -math.inf)
    return scores


def tiled_forward(q, k, v, block, causal):
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        m = torch.full_like(q[..., rows, :1], -math.inf)
        l = torch.zeros_like(m)
        total = torch.zeros_like(q[..., rows, :])
        for columns in blocks(k.shape[-2], block):
            s = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, r = torch.exp(s - new), torch.exp(m - new)
            l = l * r + p.sum(-1, keepdim=True)
            total = total * r + p @ v[..., columns, :]
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log()
    return output, log_sum


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = tiled_forward(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        delta = (gradient * output).sum(-1, keepdim=True)
        root = math.sqrt(q.shape[-1])
        for rows in blocks(q.shape[-2], ctx.block):
            for columns in blocks(q.shape[-2], ctx.block):
                p = torch.exp(block_scores(q, k, rows, columns, ctx.causal) - log_sum[..., rows, :])
                dv[..., columns, :] = p.mT @ gradient[..., rows, :]
                ds = p * (gradient[..., rows, :] @ v[..., columns, :].mT - delta[..., rows, :])
                dq[..., rows, :] += ds @ k[..., columns, :] / root
                dk[..., columns, :] = ds.mT @ q[..., rows, :] / root
        return dq, dk, dv, None, None


# %% wrong: log2
"""log_sum in base 2, used with exp."""

import math

import torch


def blocks(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        of_rows = torch.arange(rows.start, rows.stop)
        of_columns = torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(of_columns > of_rows[:, None], -math.inf)
    return scores


def tiled_forward(q, k, v, block, causal):
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        m = torch.full_like(q[..., rows, :1], -math.inf)
        l = torch.zeros_like(m)
        total = torch.zeros_like(q[..., rows, :])
        for columns in blocks(k.shape[-2], block):
            s = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, r = torch.exp(s - new), torch.exp(m - new)
            l = l * r + p.sum(-1, keepdim=True)
            total = total * r + p @ v[..., columns, :]
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log2()
    return output, log_sum


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = tiled_forward(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        delta = (gradient * output).sum(-1, keepdim=True)
        root = math.sqrt(q.shape[-1])
        for rows in blocks(q.shape[-2], ctx.block):
            for columns in blocks(q.shape[-2], ctx.block):
                p = torch.exp(block_scores(q, k, rows, columns, ctx.causal) - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                ds = p * (gradient[..., rows, :] @ v[..., columns, :].mT - delta[..., rows, :])
                dq[..., rows, :] += ds @ k[..., columns, :] / root
                dk[..., columns, :] += ds.mT @ q[..., rows, :] / root
        return dq, dk, dv, None, None


# %% wrong: keeps_contiguous_copies
"""q, k and v are copied before they are saved. [earns 4]"""

import math

import torch


def blocks(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        of_rows = torch.arange(rows.start, rows.stop)
        of_columns = torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(of_columns > of_rows[:, None], -math.inf)
    return scores


def tiled_forward(q, k, v, block, causal):
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        m = torch.full_like(q[..., rows, :1], -math.inf)
        l = torch.zeros_like(m)
        total = torch.zeros_like(q[..., rows, :])
        for columns in blocks(k.shape[-2], block):
            s = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, r = torch.exp(s - new), torch.exp(m - new)
            l = l * r + p.sum(-1, keepdim=True)
            total = total * r + p @ v[..., columns, :]
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log()
    return output, log_sum


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = tiled_forward(q, k, v, block, causal)
        ctx.save_for_backward(q.clone(), k.clone(), v.clone(), output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        delta = (gradient * output).sum(-1, keepdim=True)
        root = math.sqrt(q.shape[-1])
        for rows in blocks(q.shape[-2], ctx.block):
            for columns in blocks(q.shape[-2], ctx.block):
                p = torch.exp(block_scores(q, k, rows, columns, ctx.causal) - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                ds = p * (gradient[..., rows, :] @ v[..., columns, :].mT - delta[..., rows, :])
                dq[..., rows, :] += ds @ k[..., columns, :] / root
                dk[..., columns, :] += ds.mT @ q[..., rows, :] / root
        return dq, dk, dv, None, None


# %% wrong: expanded_log_sum
"""log_sum is kept as wide as the output. [earns 4]"""

import math

import torch


def blocks(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        of_rows = torch.arange(rows.start, rows.stop)
        of_columns = torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(of_columns > of_rows[:, None], -math.inf)
    return scores


def tiled_forward(q, k, v, block, causal):
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        m = torch.full_like(q[..., rows, :1], -math.inf)
        l = torch.zeros_like(m)
        total = torch.zeros_like(q[..., rows, :])
        for columns in blocks(k.shape[-2], block):
            s = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, r = torch.exp(s - new), torch.exp(m - new)
            l = l * r + p.sum(-1, keepdim=True)
            total = total * r + p @ v[..., columns, :]
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log()
    return output, log_sum


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = tiled_forward(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, output, log_sum.expand_as(q).clone())
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = (*ctx.saved_tensors[:4], ctx.saved_tensors[4][..., :1])
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        delta = (gradient * output).sum(-1, keepdim=True)
        root = math.sqrt(q.shape[-1])
        for rows in blocks(q.shape[-2], ctx.block):
            for columns in blocks(q.shape[-2], ctx.block):
                p = torch.exp(block_scores(q, k, rows, columns, ctx.causal) - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                ds = p * (gradient[..., rows, :] @ v[..., columns, :].mT - delta[..., rows, :])
                dq[..., rows, :] += ds @ k[..., columns, :] / root
                dk[..., columns, :] += ds.mT @ q[..., rows, :] / root
        return dq, dk, dv, None, None


# %% wrong: rows_only
"""Backward takes blocks of rows, and whole columns, in float64. [earns 4]"""

import math

import torch


def blocks(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        of_rows = torch.arange(rows.start, rows.stop)
        of_columns = torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(of_columns > of_rows[:, None], -math.inf)
    return scores


def tiled_forward(q, k, v, block, causal):
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        m = torch.full_like(q[..., rows, :1], -math.inf)
        l = torch.zeros_like(m)
        total = torch.zeros_like(q[..., rows, :])
        for columns in blocks(k.shape[-2], block):
            s = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, r = torch.exp(s - new), torch.exp(m - new)
            l = l * r + p.sum(-1, keepdim=True)
            total = total * r + p @ v[..., columns, :]
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log()
    return output, log_sum


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = tiled_forward(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        delta = (gradient * output).sum(-1, keepdim=True)
        root = math.sqrt(q.shape[-1])
        for rows in blocks(q.shape[-2], 4 * ctx.block):
            for columns in [slice(0, q.shape[-2])]:
                p = torch.exp(block_scores(q, k, rows, columns, ctx.causal) - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                ds = p * (gradient[..., rows, :] @ v[..., columns, :].mT - delta[..., rows, :])
                dq[..., rows, :] += ds @ k[..., columns, :] / root
                dk[..., columns, :] += ds.mT @ q[..., rows, :] / root
        return dq, dk, dv, None, None


# %% wrong: noncausal_whole
"""Without a mask, backward takes everything at once. [earns 4]"""

import math, torch


def _scores(q, k, i, j, block, causal):
    s = q[..., i : i + block, :] @ k[..., j : j + block, :].mT / math.sqrt(q.shape[-1])
    if causal:
        s = s.masked_fill(
            torch.arange(j, j + s.shape[-1]) > torch.arange(i, i + s.shape[-2])[:, None], -math.inf
        )
    return s


def _forward(q, k, v, block, causal):
    n = q.shape[-2]
    out = torch.empty_like(q)
    L = torch.empty_like(q[..., :1])
    for i in range(0, n, block):
        m = torch.full_like(q[..., i : i + block, :1], -math.inf)
        l = torch.zeros_like(m)
        acc = torch.zeros_like(q[..., i : i + block, :])
        for j in range(0, n, block):
            if causal and j >= i + block:
                break
            s = _scores(q, k, i, j, block, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p = (s - new).exp()
            f = (m - new).exp()
            l = l * f + p.sum(-1, keepdim=True)
            acc = acc * f + p @ v[..., j : j + block, :]
            m = new
        out[..., i : i + block, :] = acc / l
        L[..., i : i + block, :] = m + l.log()
    return out, L


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        out, L = _forward(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, out, L)
        ctx.block, ctx.causal = block, causal
        return out

    @staticmethod
    def backward(ctx, g):
        q, k, v, out, L = ctx.saved_tensors
        block, causal = ctx.block, ctx.causal
        n, scale = q.shape[-2], 1 / math.sqrt(q.shape[-1])
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        D = (g * out).sum(-1, keepdim=True)
        if not causal:
            block = n
        for i in range(0, n, block):
            r = slice(i, i + block)
            for j in range(0, n, block):
                if causal and j >= i + block:
                    break
                c = slice(j, j + block)
                p = torch.exp(_scores(q, k, i, j, block, causal) - L[..., r, :])
                dv[..., c, :] += p.mT @ g[..., r, :]
                ds = p * (g[..., r, :] @ v[..., c, :].mT - D[..., r, :]) * scale
                dq[..., r, :] += ds @ k[..., c, :]
                dk[..., c, :] += ds.mT @ q[..., r, :]
        return dq, dk, dv, None, None


# %% wrong: block_global
"""block and causal are global: the last call's. [earns 2]"""

import math, torch


def _scores(q, k, i, j, block, causal):
    s = q[..., i : i + block, :] @ k[..., j : j + block, :].mT / math.sqrt(q.shape[-1])
    if causal:
        s = s.masked_fill(
            torch.arange(j, j + s.shape[-1]) > torch.arange(i, i + s.shape[-2])[:, None], -math.inf
        )
    return s


def _forward(q, k, v, block, causal):
    n = q.shape[-2]
    out = torch.empty_like(q)
    L = torch.empty_like(q[..., :1])
    for i in range(0, n, block):
        m = torch.full_like(q[..., i : i + block, :1], -math.inf)
        l = torch.zeros_like(m)
        acc = torch.zeros_like(q[..., i : i + block, :])
        for j in range(0, n, block):
            if causal and j >= i + block:
                break
            s = _scores(q, k, i, j, block, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p = (s - new).exp()
            f = (m - new).exp()
            l = l * f + p.sum(-1, keepdim=True)
            acc = acc * f + p @ v[..., j : j + block, :]
            m = new
        out[..., i : i + block, :] = acc / l
        L[..., i : i + block, :] = m + l.log()
    return out, L


STATE = {}


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        out, L = _forward(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, out, L)
        STATE["a"] = block, causal
        return out

    @staticmethod
    def backward(ctx, g):
        q, k, v, out, L = ctx.saved_tensors
        block, causal = STATE["a"]
        n, scale = q.shape[-2], 1 / math.sqrt(q.shape[-1])
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        D = (g * out).sum(-1, keepdim=True)
        for i in range(0, n, block):
            r = slice(i, i + block)
            for j in range(0, n, block):
                if causal and j >= i + block:
                    break
                c = slice(j, j + block)
                p = torch.exp(_scores(q, k, i, j, block, causal) - L[..., r, :])
                dv[..., c, :] += p.mT @ g[..., r, :]
                ds = p * (g[..., r, :] @ v[..., c, :].mT - D[..., r, :]) * scale
                dq[..., r, :] += ds @ k[..., c, :]
                dk[..., c, :] += ds.mT @ q[..., r, :]
        return dq, dk, dv, None, None


# %% wrong: mask_kept
"""A causal mask of all rows and columns is kept for backward. [earns 4]"""

import math

import torch
import torch.nn.functional as F


def blocks(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        of_rows = torch.arange(rows.start, rows.stop)
        of_columns = torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(of_columns > of_rows[:, None], -math.inf)
    return scores


def tiled_forward(q, k, v, block, causal):
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
        for columns in blocks(q.shape[-2], block):
            if causal and columns.start >= rows.stop:
                break
            scores = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
        log_sum[..., rows, :] = maximum + torch.log(total)
    return output, log_sum


def tiled_attention(q, k, v, block: int, causal: bool = False) -> torch.Tensor:
    return tiled_forward(q, k, v, block, causal)[0]


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = tiled_forward(q, k, v, block, causal)
        ctx.block, ctx.causal = block, causal
        n = torch.arange(q.shape[-2])
        ctx.mask = n > n[:, None] if causal else None
        ctx.save_for_backward(q, k, v, output, log_sum)
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in blocks(q.shape[-2], ctx.block):
            for columns in blocks(q.shape[-2], ctx.block):
                if ctx.causal and columns.start >= rows.stop:
                    break
                scores = block_scores(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% wrong: bytes_of_p
"""P is kept as bytes. [earns 4]"""

import math

import torch
import torch.nn.functional as F


def blocks(seq, block):
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        of_rows = torch.arange(rows.start, rows.stop)
        of_columns = torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(of_columns > of_rows[:, None], -math.inf)
    return scores


def tiled_forward(q, k, v, block, causal):
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
        for columns in blocks(q.shape[-2], block):
            if causal and columns.start >= rows.stop:
                break
            scores = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
        log_sum[..., rows, :] = maximum + torch.log(total)
    return output, log_sum


def tiled_attention(q, k, v, block: int, causal: bool = False) -> torch.Tensor:
    return tiled_forward(q, k, v, block, causal)[0]


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = tiled_forward(q, k, v, block, causal)
        ctx.block, ctx.causal = block, causal
        every = slice(0, q.shape[-2])
        ctx.p = torch.exp(block_scores(q, k, every, every, causal) - log_sum).numpy().tobytes()
        ctx.save_for_backward(q, k, v, output, log_sum)
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in blocks(q.shape[-2], ctx.block):
            for columns in blocks(q.shape[-2], ctx.block):
                if ctx.causal and columns.start >= rows.stop:
                    break
                scores = block_scores(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% right: rows_against_all
"""Blocks of rows against all columns, D from P times dP."""

import math
import torch

def cut(n, block):
    return [slice(i, min(i + block, n)) for i in range(0, n, block)]

def scores(q, k, rows, cols, causal):
    s = q[..., rows, :] @ k[..., cols, :].mT / math.sqrt(q.shape[-1])
    if causal:
        r, c = torch.arange(rows.start, rows.stop), torch.arange(cols.start, cols.stop)
        s = s.masked_fill(c > r[:, None], -math.inf)
    return s

def forward_pass(q, k, v, block, causal):
    out, lse = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in cut(q.shape[-2], block):
        m, l, acc = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
        for cols in cut(q.shape[-2], block):
            if causal and cols.start >= rows.stop:
                break
            s = scores(q, k, rows, cols, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, f = torch.exp(s - new), torch.exp(m - new)
            l = l * f + p.sum(-1, keepdim=True)
            acc = acc * f + p @ v[..., cols, :]
            m = new
        out[..., rows, :] = acc / l
        lse[..., rows, :] = m + torch.log(l)
    return out, lse

class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        out, lse = forward_pass(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.block, ctx.causal = block, causal
        return out

    @staticmethod
    def backward(ctx, g):
        q, k, v, out, lse = ctx.saved_tensors
        dk, dv = torch.zeros_like(k), torch.zeros_like(v)
        parts = []
        for rows in cut(q.shape[-2], ctx.block):
            everything = slice(0, q.shape[-2])
            p = torch.exp(scores(q, k, rows, everything, ctx.causal) - lse[..., rows, :])
            dv += p.mT @ g[..., rows, :]
            dp = g[..., rows, :] @ v.mT
            dp -= (p * dp).sum(-1, keepdim=True)
            p *= dp
            p /= math.sqrt(q.shape[-1])
            parts.append(p @ k)
            dk += p.mT @ q[..., rows, :]
        return torch.cat(parts, -2), dk, dv, None, None


# %% wrong: minus_100_mask
"""Masked by -100 in both passes. [earns 2]"""

import math
import torch

def cut(n, block):
    return [slice(i, min(i + block, n)) for i in range(0, n, block)]

def scores(q, k, rows, cols, causal):
    s = q[..., rows, :] @ k[..., cols, :].mT / math.sqrt(q.shape[-1])
    if causal:
        r, c = torch.arange(rows.start, rows.stop), torch.arange(cols.start, cols.stop)
        s = s.masked_fill(c > r[:, None], -100.0)
    return s

def forward_pass(q, k, v, block, causal):
    out, lse = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in cut(q.shape[-2], block):
        m, l, acc = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
        for cols in cut(q.shape[-2], block):
            if causal and cols.start >= rows.stop:
                break
            s = scores(q, k, rows, cols, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, f = torch.exp(s - new), torch.exp(m - new)
            l = l * f + p.sum(-1, keepdim=True)
            acc = acc * f + p @ v[..., cols, :]
            m = new
        out[..., rows, :] = acc / l
        lse[..., rows, :] = m + torch.log(l)
    return out, lse

class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        out, lse = forward_pass(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.block, ctx.causal = block, causal
        return out

    @staticmethod
    def backward(ctx, g):
        q, k, v, out, lse = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        delta = (g * out).sum(-1, keepdim=True)
        for rows in cut(q.shape[-2], ctx.block):
            for cols in cut(q.shape[-2], ctx.block):
                if ctx.causal and cols.start >= rows.stop:
                    break
                p = torch.exp(scores(q, k, rows, cols, ctx.causal) - lse[..., rows, :])
                dv[..., cols, :] += p.mT @ g[..., rows, :]
                dp = g[..., rows, :] @ v[..., cols, :].mT
                ds = p * (dp - delta[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., cols, :]
                dk[..., cols, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% wrong: gradient_of_the_first_head
"""Every head gets the first one's incoming gradient. [earns 1]"""

import math
import torch

def cut(n, block):
    return [slice(i, min(i + block, n)) for i in range(0, n, block)]

def scores(q, k, rows, cols, causal):
    s = q[..., rows, :] @ k[..., cols, :].mT / math.sqrt(q.shape[-1])
    if causal:
        r, c = torch.arange(rows.start, rows.stop), torch.arange(cols.start, cols.stop)
        s = s.masked_fill(c > r[:, None], -math.inf)
    return s

def forward_pass(q, k, v, block, causal):
    out, lse = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in cut(q.shape[-2], block):
        m, l, acc = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
        for cols in cut(q.shape[-2], block):
            if causal and cols.start >= rows.stop:
                break
            s = scores(q, k, rows, cols, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, f = torch.exp(s - new), torch.exp(m - new)
            l = l * f + p.sum(-1, keepdim=True)
            acc = acc * f + p @ v[..., cols, :]
            m = new
        out[..., rows, :] = acc / l
        lse[..., rows, :] = m + torch.log(l)
    return out, lse

class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        out, lse = forward_pass(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.block, ctx.causal = block, causal
        return out

    @staticmethod
    def backward(ctx, g):
        q, k, v, out, lse = ctx.saved_tensors
        g = g[:1, :1].expand_as(g)
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        delta = (g * out).sum(-1, keepdim=True)
        for rows in cut(q.shape[-2], ctx.block):
            for cols in cut(q.shape[-2], ctx.block):
                if ctx.causal and cols.start >= rows.stop:
                    break
                p = torch.exp(scores(q, k, rows, cols, ctx.causal) - lse[..., rows, :])
                dv[..., cols, :] += p.mT @ g[..., rows, :]
                dp = g[..., rows, :] @ v[..., cols, :].mT
                ds = p * (dp - delta[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., cols, :]
                dk[..., cols, :] += ds.mT @ q[..., rows, :]
        return dq, dk, dv, None, None


# %% wrong: changes_the_incoming_gradient
"""It halves the incoming gradient in place, which other branches of the graph read too. [earns 4]"""
import math

import torch


class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = tiled_forward(q, k, v, block, causal)
        ctx.save_for_backward(q, k, v, output, log_sum)
        ctx.block, ctx.causal = block, causal
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output, log_sum = ctx.saved_tensors
        n, scale = q.shape[-2], 1 / math.sqrt(q.shape[-1])
        row_sums = (gradient * output).sum(-1, keepdim=True)
        dq, dk, dv = map(torch.zeros_like, (q, k, v))
        parts = [slice(a, min(n, a + ctx.block)) for a in range(0, n, ctx.block)]
        for rows in parts:
            for columns in parts:
                scores = block_scores(q, k, rows, columns, ctx.causal)
                p = (scores - log_sum[..., rows, :]).exp()
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) * scale
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        gradient.mul_(0.5)
        return dq, dk, dv, None, None
