# %% right: detach
"""The rounding's share is detached."""
import torch


def ternary_linear(x, weight):
    scale = weight.detach().abs().mean().clamp(min=1e-5)
    rounded = (weight / scale).round().clamp(-1, 1) * scale
    used = weight + (rounded - weight).detach()
    return x @ used.T


# %% right: function
"""A Function that hands the gradient on."""
import torch


class Ternary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight):
        scale = weight.abs().mean()
        return torch.clamp(torch.round(weight / (scale + 1e-8)), -1, 1) * scale

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def ternary_linear(x, weight):
    return torch.nn.functional.linear(x, Ternary.apply(weight))


# %% right: comparison
"""Codes from a comparison with half the mean."""
import torch


def ternary_linear(x, weight):
    """Codes from a comparison; the scale multiplies the product."""
    with torch.no_grad():
        scale = weight.abs().mean()
        codes = torch.sign(weight) * (weight.abs() > scale / 2)
    straight = weight / scale
    return (x @ (straight + (codes - straight).detach()).T) * scale


# %% wrong: absmax
"""The largest size."""
import torch


def ternary_linear(x, weight):
    scale = weight.detach().abs().max().clamp(min=1e-5)
    rounded = (weight / scale).round().clamp(-1, 1) * scale
    used = weight + (rounded - weight).detach()
    return x @ used.T


# %% wrong: a_row_each
"""A mean a row."""
import torch


def ternary_linear(x, weight):
    scale = weight.detach().abs().mean(1, keepdim=True).clamp(min=1e-5)
    rounded = (weight / scale).round().clamp(-1, 1) * scale
    used = weight + (rounded - weight).detach()
    return x @ used.T


# %% wrong: not_scaled_back
"""Codes alone."""
import torch


def ternary_linear(x, weight):
    scale = weight.detach().abs().mean().clamp(min=1e-5)
    rounded = (weight / scale).round().clamp(-1, 1)
    used = weight + (rounded - weight).detach()
    return x @ used.T


# %% wrong: no_gradient
"""torch's own gradient of 0."""
import torch


def ternary_linear(x, weight):
    scale = weight.detach().abs().mean().clamp(min=1e-5)
    rounded = (weight / scale).round().clamp(-1, 1) * scale
    used = rounded + 0 * weight
    return x @ used.T


# %% wrong: stopped_where_clipped
"""The gradient of fake_quant."""
import torch


def ternary_linear(x, weight):
    scale = weight.detach().abs().mean().clamp(min=1e-5)
    rounded = (weight / scale).round().clamp(-1, 1) * scale
    inside = weight.clamp(-scale, scale)
    used = inside + (rounded - inside).detach()
    return x @ used.T


# %% wrong: backward_unrounded
"""x's gradient through the unrounded weight."""
import torch


def ternary_linear(x, weight):
    scale = weight.detach().abs().mean().clamp(min=1e-5)
    rounded = (weight / scale).round().clamp(-1, 1) * scale
    used = weight + (rounded - weight).detach()
    straight = x @ weight.T
    return straight + (x @ used.T - straight).detach()


# %% wrong: signs
"""Signs, no zeros."""
import torch


def ternary_linear(x, weight):
    scale = weight.detach().abs().mean().clamp(min=1e-5)
    rounded = weight.sign() * scale
    used = weight + (rounded - weight).detach()
    return x @ used.T


# %% wrong: through_the_mean
"""The gradient goes through the mean as well."""
import torch


def ternary_linear(x, weight):
    scale = weight.abs().mean().clamp(min=1e-5)
    rounded = (weight / scale).round().clamp(-1, 1) * scale
    codes = weight / scale
    used = (codes + (codes.round().clamp(-1, 1) - codes).detach()) * scale
    return x @ used.T
