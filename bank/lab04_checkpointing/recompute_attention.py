# %% right: core_only
"""Only what is between queries, keys and values is made again."""

from torch.utils.checkpoint import checkpoint as torchs_checkpoint


def recompute_attention_only(block, x):
    attention = block.attention
    heads = attention.qkv(block.norm1(x)).chunk(3, dim=-1)
    q, k, v = (h.unflatten(-1, (attention.n_heads, -1)).transpose(1, 2) for h in heads)
    y = torchs_checkpoint(attention._standard, q, k, v, use_reentrant=False)
    x = x + attention.out(y.transpose(1, 2).flatten(2))
    return x + block.mlp(block.norm2(x))


# %% right: hooks
"""Hooks around attention that store numbers and build the tensors again."""

import torch


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    state = torch.get_rng_state()
    saved = {}
    count = 0

    def pack(tensor):
        nonlocal count
        count += 1
        return count - 1

    def again():
        def keep(tensor):
            saved[len(saved)] = tensor.detach()
            return len(saved) - 1

        now = torch.get_rng_state()
        torch.set_rng_state(state)
        with torch.enable_grad():
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda index: saved[index]):
                fn(*args)
        torch.set_rng_state(now)

    def unpack(index):
        if not saved:
            again()
        return saved[index]

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        return fn(*args)


def recompute_attention_only(block, x):
    def branch(y):
        return block.attention(block.norm1(y))

    x = x + checkpoint(branch, x)
    return x + block.mlp(block.norm2(x))


# %% right: own_checkpoint
"""Attention through an own checkpoint; norm1 stays outside."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def recompute_attention_only(block, x):
    attended = x + checkpoint(block.attention, block.norm1(x))
    return attended + block.mlp(block.norm2(attended))


# %% right: torchs_checkpoint
"""Attention and its norm through torch's checkpoint."""

from torch.utils.checkpoint import checkpoint as torchs_checkpoint


def recompute_attention_only(block, x):
    x = x + torchs_checkpoint(lambda y: block.attention(block.norm1(y)), x, use_reentrant=False)
    return x + block.mlp(block.norm2(x))


# %% wrong: another_result
"""Forgets the second residual."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def recompute_attention_only(block, x):
    attended = x + checkpoint(block.attention, block.norm1(x))
    return block.mlp(block.norm2(attended))


# %% wrong: fused
"""torch's fused attention in place of the block's own. [earns 1]"""

import torch.nn.functional as F


def recompute_attention_only(block, x):
    attention = block.attention
    heads = attention.qkv(block.norm1(x)).chunk(3, dim=-1)
    q, k, v = (h.unflatten(-1, (attention.n_heads, -1)).transpose(1, 2) for h in heads)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + attention.out(y.transpose(1, 2).flatten(2))
    return x + block.mlp(block.norm2(x))


# %% wrong: gradients
"""Cuts attention off the graph."""

import torch


def recompute_attention_only(block, x):
    with torch.no_grad():
        branch = block.attention(block.norm1(x))
    attended = x + branch
    return attended + block.mlp(block.norm2(attended))


# %% wrong: mlp_instead
"""Recomputes the MLP and keeps attention. [earns 1]"""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def recompute_attention_only(block, x):
    attended = x + block.attention(block.norm1(x))
    return attended + checkpoint(block.mlp, block.norm2(attended))


# %% wrong: nothing_recomputed
"""Calls the block. [earns 1]"""


def recompute_attention_only(block, x):
    return block(x)


# %% wrong: switch
"""Sets the block's own switch."""


def recompute_attention_only(block, x):
    block.attention.recompute = True
    return block(x)


# %% wrong: twice
"""Runs the MLP once to look at its size. [earns 2]"""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def recompute_attention_only(block, x):
    attended = x + checkpoint(block.attention, block.norm1(x))
    with torch.no_grad():
        block.mlp(block.norm2(attended))
    return attended + block.mlp(block.norm2(attended))


# %% wrong: whole_block
"""Recomputes the whole block. [earns 2]"""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def recompute_attention_only(block, x):
    return checkpoint(block, x)


# %% wrong: block_changed
"""Puts a checkpoint around attention's forward, and leaves it there."""
from torch.utils.checkpoint import checkpoint as recomputed


def recompute_attention_only(block, x):
    plain = block.attention.forward
    block.attention.forward = lambda h: recomputed(plain, h, use_reentrant=False)
    return block(x)


# %% right: put_back
"""Puts a checkpoint around attention's forward, and the forward back."""
from torch.utils.checkpoint import checkpoint as recomputed


def recompute_attention_only(block, x):
    plain = block.attention.forward
    block.attention.forward = lambda h: recomputed(plain, h, use_reentrant=False)
    try:
        return block(x)
    finally:
        block.attention.forward = plain


# %% wrong: both_checkpointed
"""Checkpoints the MLP as well. [earns 2]"""

import torch


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        return fn(*args)

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            out = ctx.fn(*args)
        torch.autograd.backward(out, gradients[0])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)



def recompute_attention_only(block, x):
    a = x + checkpoint(block.attention, block.norm1(x))
    return a + checkpoint(block.mlp, block.norm2(a))


# %% wrong: hook_left
"""Leaves a hook on attention."""

import torch
from torch import nn
import torch.utils.checkpoint


def recompute_attention_only(block, x):

    block.attention.register_forward_hook(lambda *a: None)
    a = x + torch.utils.checkpoint.checkpoint(block.attention, block.norm1(x), use_reentrant=False)
    return a + block.mlp(block.norm2(a))
