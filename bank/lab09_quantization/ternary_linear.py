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


# %% right: linear
"""F.linear, in-place on a detached copy."""

import torch


def ternary_linear(x, weight):
    with torch.no_grad():
        gamma = weight.abs().mean()
        w = torch.clone(weight).div_(gamma).round_().clamp_(-1, 1).mul_(gamma)
    return torch.nn.functional.linear(x, weight - weight.detach() + w)


# %% right: function_of_the_weight
"""A Function of the weight alone."""

import torch


class Ternary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        gamma = w.abs().sum() / w.numel()
        return torch.clamp(torch.round(w / gamma), min=-1, max=1) * gamma

    @staticmethod
    def backward(ctx, g):
        return g


def ternary_linear(x, weight):
    return x.matmul(Ternary.apply(weight).t())


# %% right: einsum
"""Whole product in one Function."""

import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        gamma = w.abs().mean()
        used = gamma * torch.round(w / gamma).clamp(-1, 1)
        ctx.save_for_backward(x, used)
        return torch.einsum("bk,nk->bn", x, used)

    @staticmethod
    def backward(ctx, g):
        x, used = ctx.saved_tensors
        return g @ used, torch.einsum("bn,bk->nk", g, x)


ternary_linear = Product.apply


# %% wrong: state_shared
"""Saved on the class: two layers share it."""

import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        gamma = w.abs().mean()
        used = gamma * torch.round(w / gamma).clamp(-1, 1)
        Product.kept = x, used
        return x @ used.T

    @staticmethod
    def backward(ctx, g):
        x, used = Product.kept
        return g @ used, g.T @ x


def ternary_linear(x, weight):
    return Product.apply(x, weight)


# %% wrong: writes_weight
"""The weight itself is rounded in place."""

import torch


def ternary_linear(x, weight):
    g = weight.data.abs().mean()
    weight.data = (weight.data / g).round().clamp(-1, 1) * g
    return x @ weight.T


# %% wrong: not_clipped
"""Codes beyond 1."""

import torch


def ternary_linear(x, weight):
    g = weight.detach().abs().mean()
    used = (weight.detach() / g).round() * g
    return x @ (weight + (used - weight).detach()).T


# %% wrong: mean_of_weights
"""The mean of weights, not of their sizes."""

import torch


def ternary_linear(x, weight):
    g = weight.detach().mean()
    used = (weight.detach() / g).round().clamp(-1, 1) * g
    return x @ (weight + (used - weight).detach()).T


# %% wrong: root_mean_square
"""The root of the mean square."""

import torch


def ternary_linear(x, weight):
    g = weight.detach().square().mean().sqrt()
    used = (weight.detach() / g).round().clamp(-1, 1) * g
    return x @ (weight + (used - weight).detach()).T


# %% wrong: median
"""The median of sizes."""

import torch


def ternary_linear(x, weight):
    g = weight.detach().abs().median()
    used = (weight.detach() / g).round().clamp(-1, 1) * g
    return x @ (weight + (used - weight).detach()).T


# %% right: zero_with_a_gradient
"""A zero that has the weight's gradient is added to the codes."""
import torch


def ternary_linear(x, weight):
    gamma = weight.detach().abs().mean()
    codes = (weight.detach() / gamma).round().clamp_(-1, 1)
    zero = weight - weight.detach()
    return (x @ (codes + zero / gamma).T) * gamma


# %% wrong: cached_gamma
"""gamma is kept for each shape."""
import torch

_gammas = {}


def ternary_linear(x, weight):
    gamma = weight.detach().abs().mean()
    gamma = _gammas.setdefault(weight.shape, gamma)
    rounded = (weight / gamma).round().clamp(-1, 1) * gamma
    return x @ (weight + (rounded - weight).detach()).T
