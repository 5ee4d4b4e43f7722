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
