# %% right: at_once
"""Entropy and share are computed at once, the view is cloned."""

import math

import torch


def lean_attention(q, k, v, block):
    outputs, entropies, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(torch.special.entr(p).sum(-1))
        firsts.append(p[..., 0].clone())
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


# %% right: into_buffers
"""Results are written into tensors made before."""

import math

import torch


def lean_attention(q, k, v, block):
    output = torch.empty_like(q)
    entropy, first = (torch.empty(q.shape[:-1], dtype=q.dtype) for _ in range(2))
    for start in range(0, q.shape[-2], block):
        rows = slice(start, start + block)
        p = torch.softmax(q[..., rows, :] @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        output[..., rows, :] = p @ v
        entropy[..., rows] = torch.special.entr(p).sum(-1)
        first[..., rows] = p[..., 0]
    return output, entropy, first


# %% right: log_of_the_sum
"""Entropy by the log of the sum, without p log p."""

import torch


def lean_attention(q, k, v, block):
    parts = []
    for start in range(0, q.shape[2], block):
        scores = q[:, :, start : start + block] @ k.transpose(2, 3) * q.shape[3] ** -0.5
        log_sum = scores.logsumexp(-1)
        p = torch.exp(scores - log_sum[..., None])
        entropy = log_sum - (p * scores).sum(-1)
        parts.append((p @ v, entropy, torch.exp(scores[..., 0] - log_sum)))
    outputs, entropies, firsts = zip(*parts)
    return torch.cat(outputs, 2), torch.cat(entropies, 2), torch.cat(firsts, 2)


# %% wrong: blocks_stay
"""The list of probabilities stays. [earns 1]"""

import math

import torch


def lean_attention(q, k, v, block):
    outputs, probabilities, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        probabilities.append(p)
        firsts.append(p[..., 0].clone())
    entropies = [torch.special.entr(p).sum(-1) for p in probabilities]
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


# %% wrong: view_stays
"""The list is gone, the views are there still. [earns 1]"""

import math

import torch


def lean_attention(q, k, v, block):
    outputs, entropies, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(torch.special.entr(p).sum(-1))
        firsts.append(p[..., 0])
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


# %% wrong: detached_view
"""detach() is a view too. [earns 1]"""

import math

import torch


def lean_attention(q, k, v, block):
    outputs, entropies, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(torch.special.entr(p).sum(-1))
        firsts.append(p[..., 0].detach())
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


# %% wrong: whole_matrix
"""All rows at once. [earns 1]"""

import math

import torch


def lean_attention(q, k, v, block):
    outputs, entropies, firsts = [], [], []
    for rows in [q]:
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(torch.special.entr(p).sum(-1))
        firsts.append(p[..., 0].clone())
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


# %% wrong: entropy_in_bits
"""Entropy with the logarithm of base 2."""

import math

import torch


def lean_attention(q, k, v, block):
    outputs, entropies, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(torch.special.entr(p).sum(-1) / math.log(2))
        firsts.append(p[..., 0].clone())
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


# %% wrong: mean_entropy
"""A mean over columns."""

import math

import torch


def lean_attention(q, k, v, block):
    outputs, entropies, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(torch.special.entr(p).mean(-1))
        firsts.append(p[..., 0].clone())
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


# %% wrong: last_token
"""The last column."""

import math

import torch


def lean_attention(q, k, v, block):
    outputs, entropies, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(torch.special.entr(p).sum(-1))
        firsts.append(p[..., -1].clone())
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


# %% wrong: not_scaled
"""Scores are not scaled."""

import math

import torch


def lean_attention(q, k, v, block):
    outputs, entropies, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(torch.special.entr(p).sum(-1))
        firsts.append(p[..., 0].clone())
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


# %% right: row_buffers
"""Written into given buffers, log-sum-exp."""

import math

import torch


def lean_attention(q, k, v, block):
    out, ent, first = torch.empty_like(q), q.new_empty(q.shape[:-1]), q.new_empty(q.shape[:-1])
    for a in range(0, q.shape[-2], block):
        s = slice(a, min(a + block, q.shape[-2]))
        p = torch.softmax(q[..., s, :] @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1)
        out[..., s, :] = torch.matmul(p, v)
        ent[..., s] = -torch.xlogy(p, p).sum(-1)
        first[..., s] = p.select(-1, 0)
    return out, ent, first


# %% right: recursive
"""Recursion over blocks."""

import math

import torch


def of_block(rows, k, v):
    p = (rows @ k.mT / math.sqrt(rows.shape[-1])).softmax(dim=-1)
    return p @ v, torch.special.entr(p).sum(-1), p[..., 0].contiguous().clone()


def lean_attention(q, k, v, block):
    parts = [of_block(rows, k, v) for rows in q.split(block, dim=-2)]
    outs, ents, firsts = zip(*parts)
    return torch.cat(outs, -2), torch.cat(ents, -1), torch.cat(firsts, -1)


# %% right: first_apart
"""The first token's share from its score and the log-sum."""

import math

import torch


def lean_attention(q, k, v, block):
    results = []
    for rows in q.split(block, dim=-2):
        s = rows @ k.mT / math.sqrt(q.shape[-1])
        lse = s.logsumexp(-1)
        first = (s[..., 0] - lse).exp()
        p = s.sub_(lse[..., None]).exp_()
        results.append((p @ v, torch.special.entr(p).sum(-1), first))
    a, b, c = zip(*results)
    return torch.cat(a, dim=-2), torch.cat(b, dim=-1), torch.cat(c, dim=-1)


# %% wrong: contiguous_view
"""squeeze of a narrow view. [earns 1]"""

import math

import torch


def lean_attention(q, k, v, block):
    outputs, entropies, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(torch.special.entr(p).sum(-1))
        firsts.append(p.narrow(-1, 0, 1).squeeze(-1))
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


# %% wrong: lambda_keeps
"""Entropies are computed at the end, by closures. [earns 1]"""

import math

import torch


def lean_attention(q, k, v, block):
    outputs, entropies, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(lambda p=p: torch.special.entr(p).sum(-1))
        firsts.append(p[..., 0].clone())
    return (
        torch.cat(outputs, dim=-2),
        torch.cat([e() for e in entropies], dim=-1),
        torch.cat(firsts, dim=-1),
    )


# %% wrong: numpy_view
"""A numpy view of the first column. [earns 1]"""

import math

import torch


def lean_attention(q, k, v, block):
    outputs, entropies, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(torch.special.entr(p).sum(-1))
        firsts.append(p.numpy()[..., 0])
    return (
        torch.cat(outputs, dim=-2),
        torch.cat(entropies, dim=-1),
        torch.cat([torch.from_numpy(f) for f in firsts], dim=-1),
    )


# %% wrong: rest_lost
"""The last rows are lost. [earns 1]"""

import math

import torch


def lean_attention(q, k, v, block):
    outputs, entropies, firsts = [], [], []
    for rows in q[..., : q.shape[-2] // block * block, :].split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(torch.special.entr(p).sum(-1))
        firsts.append(p[..., 0].clone())
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


# %% wrong: q_in_place
"""q is scaled in place."""

import math

import torch


def lean_attention(q, k, v, block):
    q *= q.shape[-1] ** -0.5
    outputs, entropies, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(torch.special.entr(p).sum(-1))
        firsts.append(p[..., 0].clone())
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


# %% wrong: nan_where_zero
"""-p log p is NaN where p is 0. [earns 1]"""
import math

import torch


def lean_attention(q, k, v, block):
    outputs, entropies, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(-(p * p.log()).sum(-1))
        firsts.append(p[..., 0].clone())
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


# %% right: entropy_of_scores
"""The entropy comes from the scores."""
import math

import torch


def lean_attention(q, k, v, block):
    def one(rows):
        s = torch.einsum("...id,...jd->...ij", rows, k) / math.sqrt(k.shape[-1])
        p = torch.softmax(s, -1)
        return p @ v, s.logsumexp(-1) - (p * s).sum(-1), p.select(-1, 0) + 0
    found = [one(rows) for rows in q.split(block, -2)]
    return torch.cat([f[0] for f in found], -2), torch.cat([f[1] for f in found], -1), torch.cat([f[2] for f in found], -1)
