# %% right: rows_and_columns
"""Blocks of rows, and for each, blocks of columns."""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq, width = q.shape[-2:]
    output = torch.empty_like(q)
    for start in range(0, seq, block):
        rows = slice(start, min(start + block, seq))
        maximum = torch.full_like(q[..., rows, :1], -math.inf)
        total, result = 0.0, 0.0
        for first in range(0, rows.stop if causal else seq, block):
            columns = slice(first, min(first + block, seq))
            scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(width)
            if causal:
                i = torch.arange(rows.start, rows.stop)[:, None]
                j = torch.arange(columns.start, columns.stop)
                scores = scores.masked_fill(j > i, -math.inf)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
    return output


# %% right: blocks_of_columns
"""All rows at once, against one block of columns after another."""

import torch


def tiled_attention(q, k, v, block, causal=False):
    batch, heads, seq, width = q.shape
    maximum = q.new_full((batch, heads, seq, 1), float("-inf"))
    total = q.new_zeros(batch, heads, seq, 1)
    result = torch.zeros_like(q)
    for first in range(0, seq, block):
        keys, values = k[:, :, first : first + block], v[:, :, first : first + block]
        scores = q @ keys.transpose(-2, -1)
        scores *= width**-0.5
        if causal:
            later = torch.arange(first, first + keys.shape[2]) > torch.arange(seq)[:, None]
            scores.masked_fill_(later, float("-inf"))
        new = torch.maximum(maximum, scores.max(dim=-1, keepdim=True).values)
        scores.sub_(new).exp_()
        shrink = torch.exp(maximum - new)
        total = total * shrink + scores.sum(dim=-1, keepdim=True)
        result = result * shrink + scores @ values
        maximum = new
    return result / total


# %% right: blocks_of_rows
"""Blocks of rows against all columns: n x B scores at once, and a softmax of them."""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq = q.shape[-2]
    parts = []
    for start in range(0, seq, block):
        rows = q[..., start : start + block, :]
        seen = min(start + block, seq) if causal else seq
        scores = torch.einsum("bhid,bhjd->bhij", rows, k[..., :seen, :]) / math.sqrt(q.shape[-1])
        if causal:
            i = torch.arange(start, start + rows.shape[-2])
            scores[..., torch.arange(seen)[None, :] > i[:, None]] = float("-inf")
        parts.append(torch.softmax(scores, dim=-1) @ v[..., :seen, :])
    return torch.cat(parts, dim=-2)


# %% right: logsumexp_state
"""The state is the log of the sum."""

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq = q.shape[2]
    scale = q.shape[3] ** -0.5
    output = torch.zeros_like(q)
    for r in range(0, seq, block):
        end = min(r + block, seq)
        log_sum = torch.full_like(q[:, :, r:end, :1], -torch.inf)
        mean = torch.zeros_like(q[:, :, r:end])
        for c in range(0, end if causal else seq, block):
            scores = (scale * q[:, :, r:end]) @ k[:, :, c : c + block].mT
            if causal:
                keep = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(r - c)
                scores = torch.where(keep, scores, -torch.inf)
            new = torch.logaddexp(log_sum, scores.logsumexp(-1, keepdim=True))
            mean = mean * (log_sum - new).exp() + (scores - new).exp() @ v[:, :, c : c + block]
            log_sum = new
        output[:, :, r:end] = mean
    return output


# %% wrong: not_scaled
"""Scores are not scaled."""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq, width = q.shape[-2:]
    output = torch.empty_like(q)
    for start in range(0, seq, block):
        rows = slice(start, min(start + block, seq))
        maximum = torch.full_like(q[..., rows, :1], -math.inf)
        total, result = 0.0, 0.0
        for first in range(0, rows.stop if causal else seq, block):
            columns = slice(first, min(first + block, seq))
            scores = q[..., rows, :] @ k[..., columns, :].mT
            if causal:
                i = torch.arange(rows.start, rows.stop)[:, None]
                j = torch.arange(columns.start, columns.stop)
                scores = scores.masked_fill(j > i, -math.inf)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
    return output


# %% wrong: scaled_by_width
"""Scores are divided by head_dim."""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq, width = q.shape[-2:]
    output = torch.empty_like(q)
    for start in range(0, seq, block):
        rows = slice(start, min(start + block, seq))
        maximum = torch.full_like(q[..., rows, :1], -math.inf)
        total, result = 0.0, 0.0
        for first in range(0, rows.stop if causal else seq, block):
            columns = slice(first, min(first + block, seq))
            scores = q[..., rows, :] @ k[..., columns, :].mT / width
            if causal:
                i = torch.arange(rows.start, rows.stop)[:, None]
                j = torch.arange(columns.start, columns.stop)
                scores = scores.masked_fill(j > i, -math.inf)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
    return output


# %% wrong: mask_ignored
"""causal plays no part."""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq, width = q.shape[-2:]
    output = torch.empty_like(q)
    for start in range(0, seq, block):
        rows = slice(start, min(start + block, seq))
        maximum = torch.full_like(q[..., rows, :1], -math.inf)
        total, result = 0.0, 0.0
        for first in range(0, seq, block):
            columns = slice(first, min(first + block, seq))
            scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(width)
            if False:
                i = torch.arange(rows.start, rows.stop)[:, None]
                j = torch.arange(columns.start, columns.stop)
                scores = scores.masked_fill(j > i, -math.inf)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
    return output


# %% wrong: always_masked
"""The mask is always there. [earns 0]"""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq, width = q.shape[-2:]
    output = torch.empty_like(q)
    for start in range(0, seq, block):
        rows = slice(start, min(start + block, seq))
        maximum = torch.full_like(q[..., rows, :1], -math.inf)
        total, result = 0.0, 0.0
        for first in range(0, rows.stop, block):
            columns = slice(first, min(first + block, seq))
            scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(width)
            if True:
                i = torch.arange(rows.start, rows.stop)[:, None]
                j = torch.arange(columns.start, columns.stop)
                scores = scores.masked_fill(j > i, -math.inf)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
    return output


# %% wrong: own_token_masked
"""A token doesn't see itself. The first row is NaN."""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq, width = q.shape[-2:]
    output = torch.empty_like(q)
    for start in range(0, seq, block):
        rows = slice(start, min(start + block, seq))
        maximum = torch.full_like(q[..., rows, :1], -math.inf)
        total, result = 0.0, 0.0
        for first in range(0, rows.stop if causal else seq, block):
            columns = slice(first, min(first + block, seq))
            scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(width)
            if causal:
                i = torch.arange(rows.start, rows.stop)[:, None]
                j = torch.arange(columns.start, columns.stop)
                scores = scores.masked_fill(j >= i, -math.inf)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
    return output


# %% wrong: future_only
"""A token sees later ones only."""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    parts = []
    for start in range(0, q.shape[-2], block):
        scores = q[..., start : start + block, :] @ k.mT / math.sqrt(q.shape[-1])
        if causal:
            i = torch.arange(start, start + scores.shape[-2])[:, None]
            scores = scores.masked_fill(torch.arange(q.shape[-2]) < i, -math.inf)
        parts.append(scores.softmax(-1) @ v)
    return torch.cat(parts, -2)


# %% wrong: softmax_a_block
"""A softmax a block, added up. [earns 0]"""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    if causal:
        output = torch.empty_like(q)
        for i in range(q.shape[-2]):
            scores = q[..., i : i + 1, :] @ k[..., : i + 1, :].mT / math.sqrt(q.shape[-1])
            output[..., i : i + 1, :] = scores.softmax(-1) @ v[..., : i + 1, :]
        return output
    result = torch.zeros_like(q)
    for first in range(0, q.shape[-2], block):
        scores = q @ k[..., first : first + block, :].mT / math.sqrt(q.shape[-1])
        result += scores.softmax(-1) @ v[..., first : first + block, :]
    return result


# %% wrong: sum_not_rescaled
"""l is rescaled when the maximum rises, the sum of values is not."""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq, output = q.shape[-2], torch.empty_like(q)
    for first in range(0, seq, block):
        rows = q[..., first : first + block, :]
        maximum = torch.full_like(rows[..., :1], -math.inf)
        total, result = torch.zeros_like(maximum), torch.zeros_like(rows)
        for start in range(0, seq, block):
            columns = slice(start, start + block)
            scores = rows @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
            if causal:
                i = torch.arange(first, first + rows.shape[-2])[:, None]
                j = torch.arange(start, start + scores.shape[-1])
                scores = scores.masked_fill(j > i, -math.inf)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            p = torch.exp(scores - new)
            total = total * torch.exp(maximum - new) + p.sum(-1, keepdim=True)
            result += p @ v[..., columns, :]
            maximum = new
        output[..., first : first + block, :] = result / total
    return output


# %% wrong: nothing_rescaled
"""Neither sum is rescaled when the maximum rises."""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq, output = q.shape[-2], torch.empty_like(q)
    for first in range(0, seq, block):
        rows = q[..., first : first + block, :]
        maximum = torch.full_like(rows[..., :1], -math.inf)
        total, result = torch.zeros_like(maximum), torch.zeros_like(rows)
        for start in range(0, seq, block):
            columns = slice(start, start + block)
            scores = rows @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
            if causal:
                i = torch.arange(first, first + rows.shape[-2])[:, None]
                j = torch.arange(start, start + scores.shape[-1])
                scores = scores.masked_fill(j > i, -math.inf)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            p = torch.exp(scores - new)
            total += p.sum(-1, keepdim=True)
            result += p @ v[..., columns, :]
            maximum = new
        output[..., first : first + block, :] = result / total
    return output


# %% wrong: rest_left_out
"""Columns behind the last whole block are left out. [earns 2]"""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq = q.shape[-2]
    block = min(block, seq)
    parts = []
    used = seq // block * block
    for start in range(0, seq, block):
        rows = q[..., start : start + block, :]
        scores = rows @ k[..., :used, :].mT / math.sqrt(q.shape[-1])
        if causal:
            i = torch.arange(start, start + rows.shape[-2])[:, None]
            scores = scores.masked_fill(torch.arange(used) > i, -math.inf)
        parts.append(scores.softmax(-1) @ v[..., :used, :])
    return torch.cat(parts, -2)


# %% wrong: overflows
"""No maximum is subtracted. [earns 2]"""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq, width = q.shape[-2:]
    output = torch.empty_like(q)
    for start in range(0, seq, block):
        rows = slice(start, min(start + block, seq))
        maximum = torch.full_like(q[..., rows, :1], -math.inf)
        total, result = 0.0, 0.0
        for first in range(0, rows.stop if causal else seq, block):
            columns = slice(first, min(first + block, seq))
            scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(width)
            if causal:
                i = torch.arange(rows.start, rows.stop)[:, None]
                j = torch.arange(columns.start, columns.stop)
                scores = scores.masked_fill(j > i, -math.inf)
            new = torch.zeros_like(maximum)
            weights, shrink = torch.exp(scores - new), 1.0
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
    return output


# %% wrong: changed
"""q is scaled in place. [earns 2]"""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq, width = q.shape[-2:]
    output = torch.empty_like(q)
    q /= math.sqrt(width)
    for start in range(0, seq, block):
        rows = slice(start, min(start + block, seq))
        maximum = torch.full_like(q[..., rows, :1], -math.inf)
        total, result = 0.0, 0.0
        for first in range(0, rows.stop if causal else seq, block):
            columns = slice(first, min(first + block, seq))
            scores = q[..., rows, :] @ k[..., columns, :].mT
            if causal:
                i = torch.arange(rows.start, rows.stop)[:, None]
                j = torch.arange(columns.start, columns.stop)
                scores = scores.masked_fill(j > i, -math.inf)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
    return output


# %% wrong: another_dtype
"""The output is always float32. [earns 2]"""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq, width = q.shape[-2:]
    output = torch.empty(q.shape, dtype=torch.float32)
    for start in range(0, seq, block):
        rows = slice(start, min(start + block, seq))
        maximum = torch.full_like(q[..., rows, :1], -math.inf)
        total, result = 0.0, 0.0
        for first in range(0, rows.stop if causal else seq, block):
            columns = slice(first, min(first + block, seq))
            scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(width)
            if causal:
                i = torch.arange(rows.start, rows.stop)[:, None]
                j = torch.arange(columns.start, columns.stop)
                scores = scores.masked_fill(j > i, -math.inf)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
    return output


# %% wrong: masked_by_default
"""causal is True by default. [earns 2]"""

import math

import torch


def tiled_attention(q, k, v, block, causal=True):
    seq, width = q.shape[-2:]
    output = torch.empty_like(q)
    for start in range(0, seq, block):
        rows = slice(start, min(start + block, seq))
        maximum = torch.full_like(q[..., rows, :1], -math.inf)
        total, result = 0.0, 0.0
        for first in range(0, rows.stop if causal else seq, block):
            columns = slice(first, min(first + block, seq))
            scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(width)
            if causal:
                i = torch.arange(rows.start, rows.stop)[:, None]
                j = torch.arange(columns.start, columns.stop)
                scores = scores.masked_fill(j > i, -math.inf)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
    return output


# %% wrong: whole_matrix
"""The whole matrix of scores. [earns 2]"""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq, width = q.shape[-2:]
    scores = q @ k.mT / math.sqrt(width)
    if causal:
        mask = torch.ones(seq, seq, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(mask, -math.inf)
    return scores.softmax(-1) @ v


# %% wrong: whole_mask
"""A mask of all rows and columns is made first. [earns 2]"""

import math

import torch


def tiled_attention(q, k, v, block, causal=False):
    seq, width = q.shape[-2:]
    output = torch.empty_like(q)
    mask = torch.ones(seq, seq, dtype=torch.bool).triu(1)
    for start in range(0, seq, block):
        rows = slice(start, min(start + block, seq))
        maximum = torch.full_like(q[..., rows, :1], -math.inf)
        total, result = 0.0, 0.0
        for first in range(0, rows.stop if causal else seq, block):
            columns = slice(first, min(first + block, seq))
            scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(width)
            if causal:
                i = torch.arange(rows.start, rows.stop)[:, None]
                j = torch.arange(columns.start, columns.stop)
                scores = scores.masked_fill(mask[rows, columns], -math.inf)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
    return output


# %% wrong: torchs_own
"""torch's own attention, which is not allowed."""

from torch.nn.functional import scaled_dot_product_attention


def tiled_attention(q, k, v, block, causal=False):
    return scaled_dot_product_attention(q, k, v, is_causal=causal)


# %% wrong: torchs_own_by_data
"""torch's own attention, which it finds by a name that no constant holds."""

from functools import reduce

import torch


def tiled_attention(q, k, v, block, causal=False):
    torchs = reduce(getattr, "nn functional scaled_dot_product_attention".split(), torch)
    return torchs(q, k, v, is_causal=causal)



# %% right: with_given
"""The given functions."""

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


def tiled_attention(q, k, v, block, causal=False):
    return tiled_forward(q, k, v, block, causal)[0]


# %% right: skips_masked_blocks
"""Blocks beyond the diagonal are skipped; in-place updates."""

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
            if causal and columns.start >= rows.stop:
                break
            s = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, r = torch.exp(s - new), torch.exp(m - new)
            l.mul_(r).add_(p.sum(-1, keepdim=True))
            total.mul_(r).add_(p @ v[..., columns, :])
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log()
    return output, log_sum


def tiled_attention(q, k, v, block, causal=False):
    return tiled_forward(q, k, v, block, causal)[0]


# %% right: per_head_loop
"""Heads one by one; q scaled before; split."""

import math

import torch


def one_head(q, k, v, block, causal):
    n, d = q.shape
    out = []
    for start, rows in zip(range(0, n, block), (q * d**-0.5).split(block)):
        m = rows.new_full((len(rows),), -math.inf)
        l, acc = torch.zeros_like(m), torch.zeros_like(rows)
        for at in range(0, start + len(rows) if causal else n, block):
            s = rows @ k[at : at + block].T
            if causal and at + s.shape[1] > start:
                i = torch.arange(start, start + len(rows)).unsqueeze(1)
                s[torch.arange(at, at + s.shape[1]) > i] = -math.inf
            new = torch.maximum(m, s.max(1).values)
            p = (s - new[:, None]).exp_()
            f = (m - new).exp_()
            l, acc, m = l * f + p.sum(1), acc * f[:, None] + p @ v[at : at + block], new
        out.append(acc / l[:, None])
    return torch.cat(out)


def tiled_attention(q, k, v, block, causal=False):
    batch, heads = q.shape[:2]
    return torch.stack(
        [
            torch.stack([one_head(q[b, h], k[b, h], v[b, h], block, causal) for h in range(heads)])
            for b in range(batch)
        ]
    )


# %% wrong: last_maximum
"""A block's maximum replaces the row's, even where it's lower."""

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
            new = s.amax(-1, keepdim=True)
            p, r = torch.exp(s - new), torch.exp(m - new).clamp(max=1.0)
            l = l * r + p.sum(-1, keepdim=True)
            total = total * r + p @ v[..., columns, :]
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log()
    return output, log_sum


def tiled_attention(q, k, v, block, causal=False):
    return tiled_forward(q, k, v, block, causal)[0]


# %% wrong: default_block
"""Blocks are of 512, whatever block says. [earns 2]"""

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
    block = 512
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


def tiled_attention(q, k, v, block, causal=False):
    return tiled_forward(q, k, v, block, causal)[0]


# %% wrong: list_of_scores
"""The scores of all blocks stay in a list. [earns 2]"""

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
    kept = []
    for rows in blocks(q.shape[-2], block):
        m = torch.full_like(q[..., rows, :1], -math.inf)
        l = torch.zeros_like(m)
        total = torch.zeros_like(q[..., rows, :])
        for columns in blocks(k.shape[-2], block):
            s = block_scores(q, k, rows, columns, causal)
            kept.append(s)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, r = torch.exp(s - new), torch.exp(m - new)
            l = l * r + p.sum(-1, keepdim=True)
            total = total * r + p @ v[..., columns, :]
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log()
    return output, log_sum


def tiled_attention(q, k, v, block, causal=False):
    return tiled_forward(q, k, v, block, causal)[0]


# %% wrong: float32_buffers
"""Buffers in float32. [earns 2]"""

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
    output, log_sum = torch.empty(q.shape), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        m = torch.full_like(q[..., rows, :1], -math.inf)
        l = torch.zeros_like(m)
        total = torch.zeros(q[..., rows, :].shape)
        for columns in blocks(k.shape[-2], block):
            s = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, r = torch.exp(s - new), torch.exp(m - new)
            l = l * r + p.sum(-1, keepdim=True)
            total = total * r + (p @ v[..., columns, :]).float()
            m = new
        output[..., rows, :] = total / l
        log_sum[..., rows, :] = m + l.log()
    return output, log_sum


def tiled_attention(q, k, v, block, causal=False):
    return tiled_forward(q, k, v, block, causal)[0]


# %% wrong: scales_q_in_place
"""q is scaled in place. [earns 2]"""

import math

import torch


def blocks(seq, block):
    return [slice(a, min(a + block, seq)) for a in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    scores = q[..., rows, :] @ k[..., columns, :].mT
    if causal:
        r, c = torch.arange(rows.start, rows.stop), torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(c > r[:, None], -math.inf)
    return scores


def tiled_forward(q, k, v, block, causal):
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    q /= math.sqrt(q.shape[-1])
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


def tiled_attention(q, k, v, block, causal=False):
    return tiled_forward(q, k, v, block, causal)[0]


# %% wrong: output_shared
"""The output buffer is kept between calls of one shape. [earns 2]"""

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


_buffers = {}


def tiled_forward(q, k, v, block, causal):
    output = (
        _buffers.setdefault("o", torch.empty_like(q))
        if _buffers.get("o", q).shape == q.shape
        else torch.empty_like(q)
    )
    log_sum = torch.empty_like(q[..., :1])
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


def tiled_attention(q, k, v, block, causal=False):
    return tiled_forward(q, k, v, block, causal)[0]


# %% wrong: noncausal_whole
"""Without a mask all scores are alive. [earns 2]"""

import math, torch


def tiled_attention(q, k, v, block, causal=False):
    if not causal:
        return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v
    n, d = q.shape[-2:]
    out = torch.empty_like(q)
    for i in range(0, n, block):
        qi = q[..., i : i + block, :]
        m = torch.full((*qi.shape[:-1], 1), -math.inf, dtype=q.dtype)
        l = torch.zeros_like(m)
        acc = torch.zeros_like(qi)
        for j in range(0, n, block):
            if causal and j >= i + block:
                break
            s = qi @ k[..., j : j + block, :].mT / math.sqrt(d)
            if causal:
                s = s.masked_fill(
                    torch.arange(j, j + s.shape[-1]) > torch.arange(i, i + s.shape[-2])[:, None],
                    -math.inf,
                )
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p = (s - new).exp()
            f = (m - new).exp()
            l = l * f + p.sum(-1, keepdim=True)
            acc = acc * f + p @ v[..., j : j + block, :]
            m = new
        out[..., i : i + block, :] = acc / l
    return out


# %% wrong: minus_100_mask
"""Masked by -100, above which real scores may lie. [earns 2]"""

import math, torch


def tiled_attention(q, k, v, block, causal=False):
    n, d = q.shape[-2:]
    out = torch.empty_like(q)
    for i in range(0, n, block):
        qi = q[..., i : i + block, :]
        m = torch.full((*qi.shape[:-1], 1), -math.inf, dtype=q.dtype)
        l = torch.zeros_like(m)
        acc = torch.zeros_like(qi)
        for j in range(0, n, block):
            if causal and j >= i + block:
                break
            s = qi @ k[..., j : j + block, :].mT / math.sqrt(d)
            if causal:
                s = s.masked_fill(
                    torch.arange(j, j + s.shape[-1]) > torch.arange(i, i + s.shape[-2])[:, None],
                    -100.0,
                )
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p = (s - new).exp()
            f = (m - new).exp()
            l = l * f + p.sum(-1, keepdim=True)
            acc = acc * f + p @ v[..., j : j + block, :]
            m = new
        out[..., i : i + block, :] = acc / l
    return out


# %% right: numpy_inside
"""numpy block by block."""

import numpy as np
import torch


def tiled_attention(q, k, v, block, causal=False):
    a, b, c = (t.detach().numpy() for t in (q, k, v))
    n, d = a.shape[-2:]
    out = np.empty_like(a)
    for i in range(0, n, block):
        top, low, acc = -np.inf, 0.0, 0.0
        for j in range(0, min(i + block, n) if causal else n, block):
            s = a[..., i : i + block, :] @ b[..., j : j + block, :].swapaxes(-1, -2) / a.dtype.type(d**0.5)
            if causal:
                s[..., np.arange(j, j + s.shape[-1]) > np.arange(i, i + s.shape[-2])[:, None]] = -np.inf
            new = np.maximum(top, s.max(-1, keepdims=True))
            p, f = np.exp(s - new), np.exp(top - new)
            low, acc, top = low * f + p.sum(-1, keepdims=True), acc * f + p @ c[..., j : j + block, :], new
        out[..., i : i + block, :] = acc / low
    return torch.from_numpy(out)


# %% wrong: mask_in_one_piece
"""The mask of all rows and columns is made in one piece, by comparing. [earns 2]"""

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
    numbers = torch.arange(q.shape[-2])
    hidden = numbers[None] > numbers[:, None]
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    for rows in blocks(q.shape[-2], block):
        maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
        for columns in blocks(q.shape[-2], block):
            if causal and columns.start >= rows.stop:
                break
            scores = block_scores(q, k, rows, columns, False)
            scores = scores.masked_fill(hidden[rows, columns], -math.inf) if causal else scores
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


# %% wrong: noncausal_in_numpy
"""Without a mask all scores at once, in numpy. [earns 2]"""

import math

import numpy as np
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
    if not causal:
        a, b, c = (t.numpy() for t in (q, k, v))
        s = a @ b.swapaxes(-1, -2) / a.dtype.type(math.sqrt(a.shape[-1]))
        p = np.exp(s - s.max(-1, keepdims=True))
        return torch.from_numpy(p @ c / p.sum(-1, keepdims=True))
    return tiled_forward(q, k, v, block, causal)[0]


# %% right: halves
"""Columns halved recursively, and merged by logaddexp."""

import torch

def _merge(a, b):
    o1, l1 = a
    o2, l2 = b
    l = torch.logaddexp(l1, l2)
    return o1 * torch.exp(l1 - l) + o2 * torch.exp(l2 - l), l

def _part(q, k, v, lo, hi, first, block, causal):
    if hi - lo <= block:
        s = torch.einsum("...id,...jd->...ij", q, k[..., lo:hi, :]).div_(q.size(-1) ** 0.5)
        if causal:
            i = torch.arange(first, first + q.size(-2)).unsqueeze(1)
            s.masked_fill_(torch.arange(lo, hi) > i, float("-inf"))
        l = s.logsumexp(-1, keepdim=True)
        p = torch.exp(s.sub_(torch.where(l.isinf(), torch.zeros_like(l), l)))
        return p @ v[..., lo:hi, :], l
    mid = lo + max(block, (hi - lo) // 2 // block * block)
    return _merge(_part(q, k, v, lo, mid, first, block, causal), _part(q, k, v, mid, hi, first, block, causal))

def tiled_attention(q, k, v, block, causal=False):
    n = q.size(-2)
    parts = []
    for first in range(0, n, block):
        rows = q[..., first : first + block, :]
        end = min(n, first + block) if causal else n
        parts.append(_part(rows, k, v, 0, end, first, block, causal)[0])
    return torch.cat(parts, -2)


# %% right: least_float
"""The least float of the dtype in place of -inf."""

import math
import torch

def tiled_attention(q, k, v, block, causal=False):
    n, d = q.shape[-2:]
    out = torch.empty_like(q)
    for i in range(0, n, block):
        rows = slice(i, min(i + block, n))
        m = torch.full_like(q[..., rows, :1], torch.finfo(q.dtype).min)
        l = torch.zeros_like(m)
        acc = torch.zeros_like(q[..., rows, :])
        for j in range(0, n, block):
            if causal and j >= rows.stop:
                break
            cols = slice(j, min(j + block, n))
            s = q[..., rows, :] @ k[..., cols, :].mT / math.sqrt(d)
            if causal:
                r, c = torch.arange(rows.start, rows.stop), torch.arange(cols.start, cols.stop)
                s = s.masked_fill(c[None] > r[:, None], torch.finfo(s.dtype).min)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, f = torch.exp(s - new), torch.exp(m - new)
            l = l * f + p.sum(-1, keepdim=True)
            acc = acc * f + p @ v[..., cols, :]
            m = new
        out[..., rows, :] = acc / l
    return out


# %% wrong: minus_1e4_mask
"""Masked by -1e4, above which real scores may lie. [earns 2]"""

import math
import torch

def tiled_attention(q, k, v, block, causal=False):
    n, d = q.shape[-2:]
    out = torch.empty_like(q)
    for i in range(0, n, block):
        rows = slice(i, min(i + block, n))
        m = torch.full_like(q[..., rows, :1], -math.inf)
        l = torch.zeros_like(m)
        acc = torch.zeros_like(q[..., rows, :])
        for j in range(0, n, block):
            if causal and j >= rows.stop:
                break
            cols = slice(j, min(j + block, n))
            s = q[..., rows, :] @ k[..., cols, :].mT / math.sqrt(d)
            if causal:
                r, c = torch.arange(rows.start, rows.stop), torch.arange(cols.start, cols.stop)
                s = s.masked_fill(c[None] > r[:, None], -1e4)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, f = torch.exp(s - new), torch.exp(m - new)
            l = l * f + p.sum(-1, keepdim=True)
            acc = acc * f + p @ v[..., cols, :]
            m = new
        out[..., rows, :] = acc / l
    return out


# %% wrong: begins_at_minus_1e4
"""The maximum begins at -1e4. [earns 2]"""

import math
import torch

def tiled_attention(q, k, v, block, causal=False):
    n, d = q.shape[-2:]
    out = torch.empty_like(q)
    for i in range(0, n, block):
        rows = slice(i, min(i + block, n))
        m = torch.full_like(q[..., rows, :1], -1e4)
        l = torch.zeros_like(m)
        acc = torch.zeros_like(q[..., rows, :])
        for j in range(0, n, block):
            if causal and j >= rows.stop:
                break
            cols = slice(j, min(j + block, n))
            s = q[..., rows, :] @ k[..., cols, :].mT / math.sqrt(d)
            if causal:
                r, c = torch.arange(rows.start, rows.stop), torch.arange(cols.start, cols.stop)
                s = s.masked_fill(c[None] > r[:, None], -math.inf)
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p, f = torch.exp(s - new), torch.exp(m - new)
            l = l * f + p.sum(-1, keepdim=True)
            acc = acc * f + p @ v[..., cols, :]
            m = new
        out[..., rows, :] = acc / l
    return out
