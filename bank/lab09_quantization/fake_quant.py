# %% right: detach
"""The rounding's share is detached."""
import torch


def fake_quant(x, bits):
    top = 2 ** (bits - 1) - 1
    inside = x.clamp(-1, 1)
    rounded = (inside * top).round() / top
    return inside + (rounded - inside).detach()


# %% right: function
"""A Function with a mask."""
import torch


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ctx.save_for_backward(x.abs() <= 1)
        top = 2 ** (bits - 1) - 1
        return torch.round(x.clamp(-1, 1) * top) / top

    @staticmethod
    def backward(ctx, gradient):
        (inside,) = ctx.saved_tensors
        return gradient * inside, None


def fake_quant(x, bits):
    return Straight.apply(x, bits)


# %% right: torchs_own
"""torch.fake_quantize_per_tensor_affine."""
import torch


def fake_quant(x, bits):
    """torch's own, with a symmetric range of codes."""
    top = 2 ** (bits - 1) - 1
    return torch.fake_quantize_per_tensor_affine(x, 1 / top, 0, -top, top)


# %% wrong: no_gradient
"""Rounds, and keeps torch's gradient of 0."""
import torch


def fake_quant(x, bits):
    top = 2 ** (bits - 1) - 1
    inside = x.clamp(-1, 1)
    rounded = (inside * top).round() / top
    return rounded


# %% wrong: clipped_too
"""Passes the gradient everywhere."""
import torch


def fake_quant(x, bits):
    top = 2 ** (bits - 1) - 1
    inside = x.clamp(-1, 1)
    rounded = (inside * top).round() / top
    return x + (rounded - x).detach()


# %% wrong: never_clipped
"""No clamp."""
import torch


def fake_quant(x, bits):
    top = 2 ** (bits - 1) - 1
    inside = x
    rounded = (inside * top).round() / top
    return inside + (rounded - inside).detach()


# %% wrong: levels_of_a_power
"""2^(bits-1) steps."""
import torch


def fake_quant(x, bits):
    top = 2 ** (bits - 1)
    inside = x.clamp(-1, 1)
    rounded = (inside * top).round() / top
    return inside + (rounded - inside).detach()


# %% wrong: unsigned_levels
"""Counts unsigned codes."""
import torch


def fake_quant(x, bits):
    top = 2**bits - 1
    inside = x.clamp(-1, 1)
    rounded = (inside * top).round() / top
    return inside + (rounded - inside).detach()


# %% wrong: truncates
"""Cuts off."""
import torch


def fake_quant(x, bits):
    top = 2 ** (bits - 1) - 1
    inside = x.clamp(-1, 1)
    rounded = (inside * top).trunc() / top
    return inside + (rounded - inside).detach()


# %% wrong: not_rounded
"""Clips only."""
import torch


def fake_quant(x, bits):
    top = 2 ** (bits - 1) - 1
    inside = x.clamp(-1, 1)
    rounded = (inside * top).round() / top
    return inside


# %% wrong: everything_detached
"""No graph at all."""
import torch


def fake_quant(x, bits):
    top = 2 ** (bits - 1) - 1
    inside = x.clamp(-1, 1)
    rounded = (inside * top).round() / top
    return rounded.detach()


# %% wrong: range_of_the_tensor
"""The largest size is the end of the range."""
import torch


def fake_quant(x, bits):
    top = 2 ** (bits - 1) - 1
    size = x.detach().abs().max()
    inside = x
    rounded = (x / size * top).round() / top * size
    return inside + (rounded - inside).detach()


# %% right: hardtanh
"""hardtanh gives clip and gradient; the rest detached."""

import torch


def fake_quant(x, bits):
    top = 2 ** (bits - 1) - 1
    c = torch.nn.functional.hardtanh(x)
    return c + (torch.round(c * top) / top - c).detach()


# %% right: mask_times_x
"""A mask; no clamp in the graph."""

import torch


def fake_quant(x, bits):
    n = 2 ** (bits - 1) - 1
    inside = (x.abs() < 1).to(x.dtype)
    with torch.no_grad():
        value = (x.clip(-1, 1) * n).round() / n
    return x * inside + (value - x * inside).detach()


# %% right: mask_in_ctx
"""A hook on the output's gradient."""

import torch


class Q(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.inside = (x > -1) & (x < 1)
        return x.clamp(-1.0, 1.0).mul(n).round().div(n)

    @staticmethod
    def backward(ctx, g):
        return torch.where(ctx.inside, g, torch.zeros_like(g)), None


def fake_quant(x, bits):
    return Q.apply(x, (1 << bits - 1) - 1)


# %% wrong: state_shared
"""The mask is kept on the class: two calls share it."""

import torch


class Q(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        Q.mask = x.abs() < 1
        return (x.clamp(-1, 1) * n).round() / n

    @staticmethod
    def backward(ctx, g):
        return g * Q.mask, None


def fake_quant(x, bits):
    return Q.apply(x, 2 ** (bits - 1) - 1)


# %% wrong: ones_upstream
"""The gradient that comes in is ignored."""

import torch


class Q(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.m = x.abs() < 1
        return (x.clamp(-1, 1) * n).round() / n

    @staticmethod
    def backward(ctx, g):
        return g * 0 + ctx.m.float(), None


def fake_quant(x, bits):
    return Q.apply(x, 2 ** (bits - 1) - 1)


# %% wrong: in_place
"""x is clamped in place."""

import torch


def fake_quant(x, bits):
    n = 2 ** (bits - 1) - 1
    x.data.clamp_(-1, 1)
    c = x.clamp(-1, 1)
    return c + ((c * n).round() / n - c).detach()


# %% wrong: upper_only
"""Only values above 1 are clipped from the gradient."""

import torch


class Q(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.m = x < 1
        return (x.clamp(-1, 1) * n).round() / n

    @staticmethod
    def backward(ctx, g):
        return g * ctx.m, None


def fake_quant(x, bits):
    return Q.apply(x, 2 ** (bits - 1) - 1)


# %% wrong: scaled_gradient
"""The gradient is multiplied by the number of steps."""

import torch


class Q(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.m = n * (x.abs() < 1)
        return (x.clamp(-1, 1) * n).round() / n

    @staticmethod
    def backward(ctx, g):
        return g * ctx.m, None


def fake_quant(x, bits):
    return Q.apply(x, 2 ** (bits - 1) - 1)


# %% wrong: three_bits
"""Three bits always."""

import torch


def fake_quant(x, bits):
    c = x.clamp(-1, 1)
    return c + ((c * 3).round() / 3 - c).detach()


# %% right: ties_up
"""Ties go up: either multiple is nearest."""
import torch


def fake_quant(x, bits):
    top = 2 ** (bits - 1) - 1
    inside = x.clamp(-1, 1)
    return inside + ((inside * top + 0.5).floor() / top - inside).detach()


# %% wrong: passes_a_step_beyond
"""Its gradient passes up to a whole step beyond the ends, where values are clipped."""
import torch


def fake_quant(x, bits):
    top = 2 ** (bits - 1) - 1
    inside = x.detach().abs() < 1 + 1 / top
    value = torch.round(x.detach().clamp(-1, 1) * top) / top
    carrier = x * inside
    return carrier + (value - carrier).detach()
