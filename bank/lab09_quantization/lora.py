# %% right: two_parameters
"""Two parameters, and a new linear layer."""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + self.b @ self.a * self.scale)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)
        return merged


# %% right: two_linear_layers
"""Two linear layers, and a deep copy."""
import copy

import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear
        for parameter in linear.parameters():
            parameter.requires_grad = False
        self.down = nn.Linear(linear.in_features, rank, bias=False)
        self.up = nn.Linear(rank, linear.out_features, bias=False)
        nn.init.zeros_(self.up.weight)
        self.rank, self.alpha = rank, alpha

    def forward(self, x):
        return self.linear(x) + self.alpha * self.up(self.down(x)) / self.rank

    def merge(self):
        merged = copy.deepcopy(self.linear)
        merged.weight.data += self.alpha / self.rank * self.up.weight @ self.down.weight
        return merged


# %% right: subclass
"""A subclass of nn.Linear."""
import torch
import torch.nn.functional as F
from torch import nn


class Lora(nn.Linear):
    """A linear layer itself, with the matrices the other way round."""

    def __init__(self, linear, rank, alpha):
        super().__init__(linear.in_features, linear.out_features, linear.bias is not None, "meta")
        self.weight, self.bias = linear.weight, linear.bias
        self.requires_grad_(False)
        self.first = nn.Parameter(torch.empty(linear.in_features, rank))
        self.second = nn.Parameter(torch.zeros(rank, linear.out_features))
        nn.init.kaiming_uniform_(self.first)
        self.factor = alpha / rank

    def forward(self, x):
        low = torch.matmul(x, self.first) * self.factor
        return F.linear(x, self.weight, self.bias) + torch.matmul(low, self.second)

    @torch.no_grad()
    def merge(self):
        merged = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        merged.weight.copy_(self.weight)
        merged.weight.add_((self.first @ self.second).T, alpha=self.factor)
        if self.bias is not None:
            merged.bias.copy_(self.bias)
        return merged


# %% wrong: base_trained
"""Nothing is frozen. [earns 1]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + self.b @ self.a * self.scale)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)
        return merged


# %% wrong: bias_trained
"""The weight alone is frozen. [earns 1]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear
        linear.weight.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + self.b @ self.a * self.scale)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)
        return merged


# %% wrong: both_zero
"""Both start at 0. [earns 1]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.zeros(rank, linear.in_features))
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + self.b @ self.a * self.scale)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)
        return merged


# %% wrong: not_zero_at_the_start
"""Both are drawn. [earns 3]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.randn(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + self.b @ self.a * self.scale)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)
        return merged


# %% wrong: alpha_ignored
"""No scale. [earns 2]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = 1.0
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + self.b @ self.a * self.scale)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)
        return merged


# %% wrong: not_divided_by_rank
"""alpha alone. [earns 2]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + self.b @ self.a * self.scale)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)
        return merged


# %% wrong: divided_by_root
"""alpha over the root of the rank. [earns 2]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank**0.5
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + self.b @ self.a * self.scale)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)
        return merged


# %% wrong: rank_over_alpha
"""Upside down. [earns 2]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = rank / alpha
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + self.b @ self.a * self.scale)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)
        return merged


# %% wrong: merged_unscaled
"""merge() forgets the scale. [earns 2]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + self.b @ self.a)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)
        return merged


# %% wrong: adapter_not_merged
"""merge() returns the base. [earns 2]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)
        return merged


# %% wrong: bias_lost
"""merge() forgets the bias. [earns 2]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + self.b @ self.a * self.scale)
            merged.bias.zero_()
        return merged


# %% wrong: merged_twice
"""The adapter's product is added twice. [earns 2]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + 2 * self.b @ self.a * self.scale)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)
        return merged


# %% wrong: as_large_as_the_weight
"""Makes the product of the matrices in forward. [earns 3]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ (self.b @ self.a * self.scale).T

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + self.b @ self.a * self.scale)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)
        return merged


# %% wrong: nothing_returned
"""Merges into a layer that it forgets. [earns 2]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            merged.weight.copy_(self.linear.weight + self.b @ self.a * self.scale)
            merged.bias.zero_()
            if self.linear.bias is not None:
                merged.bias.copy_(self.linear.bias)


# %% wrong: no_merge
"""Has no merge. [earns 1]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T * self.scale


# %% right: by_new_linear
"""As described."""

import torch


from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        new = nn.Linear(
            self.linear.in_features, self.linear.out_features, bias=self.linear.bias is not None
        )
        with torch.no_grad():
            new.weight.copy_(self.linear.weight + self.scale * self.b @ self.a)
            if new.bias is not None:
                new.bias.copy_(self.linear.bias)
        return new


# %% right: deepcopy_addmm
"""deepcopy and addmm_; embedding-like factors; sqrt split of the scale."""

import copy
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        for p in linear.parameters():
            p.requires_grad = False
        self.base = linear
        self.down = nn.Linear(linear.in_features, rank, bias=False)
        self.up = nn.Linear(rank, linear.out_features, bias=False)
        nn.init.zeros_(self.up.weight)
        self.factor = alpha / rank

    def forward(self, x):
        y = self.base(x)
        return torch.add(y, self.up(self.down(x)), alpha=self.factor)

    @torch.no_grad()
    def merge(self):
        merged = copy.deepcopy(self.base)
        merged.weight.addmm_(self.up.weight, self.down.weight, alpha=self.factor)
        return merged


# %% right: transposed
"""Parameters stored transposed."""

import torch


from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(linear.in_features, rank) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(rank, linear.out_features))
        self.scale = alpha / rank

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a @ self.b)

    def merge(self):
        new = nn.Linear(
            self.linear.in_features, self.linear.out_features, bias=self.linear.bias is not None
        )
        with torch.no_grad():
            new.weight.copy_(self.linear.weight + self.scale * (self.a @ self.b).T)
            if new.bias is not None:
                new.bias.copy_(self.linear.bias)
        return new


# %% wrong: a_buffer
"""A is a buffer: only B is trained. [earns 1]"""

import torch


from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.register_buffer("a", torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        new = nn.Linear(
            self.linear.in_features, self.linear.out_features, bias=self.linear.bias is not None
        )
        with torch.no_grad():
            new.weight.copy_(self.linear.weight + self.scale * self.b @ self.a)
            if new.bias is not None:
                new.bias.copy_(self.linear.bias)
        return new


# %% wrong: with_biases
"""The adapter has biases. [earns 1]"""

import torch
from torch import nn

from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))
        self.c = nn.Parameter(torch.zeros(linear.out_features))
        self.scale = alpha / rank

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T + self.c)

    def merge(self):
        new = nn.Linear(
            self.linear.in_features, self.linear.out_features, bias=self.linear.bias is not None
        )
        with torch.no_grad():
            new.weight.copy_(self.linear.weight + self.scale * self.b @ self.a)
            if new.bias is not None:
                new.bias.copy_(self.linear.bias)
        return new


# %% wrong: integer_scale
"""alpha // rank. [earns 2]"""

import torch


from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))
        self.scale = alpha // rank

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        new = nn.Linear(
            self.linear.in_features, self.linear.out_features, bias=self.linear.bias is not None
        )
        with torch.no_grad():
            new.weight.copy_(self.linear.weight + self.scale * self.b @ self.a)
            if new.bias is not None:
                new.bias.copy_(self.linear.bias)
        return new


# %% wrong: no_gradient_through_the_base
"""The base runs under no_grad, so x gets no gradient through it. [earns 2]"""

import torch


from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        with torch.no_grad():
            y = self.linear(x)
        return y + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        new = nn.Linear(
            self.linear.in_features, self.linear.out_features, bias=self.linear.bias is not None
        )
        with torch.no_grad():
            new.weight.copy_(self.linear.weight + self.scale * self.b @ self.a)
            if new.bias is not None:
                new.bias.copy_(self.linear.bias)
        return new


# %% wrong: transposed_merge
"""merge() adds A and B the wrong way. [earns 2]"""

import torch


from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        new = nn.Linear(
            self.linear.in_features, self.linear.out_features, bias=self.linear.bias is not None
        )
        with torch.no_grad():
            new.weight.copy_(self.linear.weight + self.scale * (self.b @ self.a).flip(0))
            if new.bias is not None:
                new.bias.copy_(self.linear.bias)
        return new


# %% wrong: zeros_in_a
"""A is 0, and B random. [earns 3]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.zeros(rank, linear.in_features))
        self.b = nn.Parameter(1e-2 * torch.randn(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        has_bias = self.linear.bias is not None
        merged = nn.Linear(self.linear.in_features, self.linear.out_features, bias=has_bias)
        merged.load_state_dict(self.linear.state_dict())
        with torch.no_grad():
            merged.weight += self.scale * self.b @ self.a
        return merged


# %% wrong: equal_rows
"""A is filled with one number. [earns 2]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.full((rank, linear.in_features), 0.1))
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        has_bias = self.linear.bias is not None
        merged = nn.Linear(self.linear.in_features, self.linear.out_features, bias=has_bias)
        merged.load_state_dict(self.linear.state_dict())
        with torch.no_grad():
            merged.weight += self.scale * self.b @ self.a
        return merged


# %% wrong: returns_itself
"""merge() returns the adapter. [earns 2]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        has_bias = self.linear.bias is not None
        merged = nn.Linear(self.linear.in_features, self.linear.out_features, bias=has_bias)
        merged.load_state_dict(self.linear.state_dict())
        with torch.no_grad():
            merged.weight += self.scale * self.b @ self.a
        return self


# %% right: merged_in_place
"""Merges into the frozen layer, and returns it."""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        with torch.no_grad():
            self.linear.weight += self.scale * self.b @ self.a
        return self.linear


# %% right: frozen_in_a_list
"""The frozen layer in a list, and a dict of parameters."""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        nn.Module.__init__(self)
        self.frozen = [linear.requires_grad_(False)]
        self.p = nn.ParameterDict({"up": torch.zeros(rank, linear.out_features), "down": torch.nn.init.normal_(torch.empty(linear.in_features, rank))})
        self.s = alpha / rank

    def forward(self, x):
        return torch.addmm(self.frozen[0](x).flatten(0, -2), x.flatten(0, -2) @ self.p["down"], self.p["up"], alpha=self.s).view(*x.shape[:-1], -1)

    def merge(self):
        f = self.frozen[0]
        m = nn.Linear(*f.weight.shape[::-1], bias=f.bias is not None)
        m.weight = nn.Parameter(f.weight + self.s * (self.p["down"] @ self.p["up"]).T)
        m.bias = f.bias
        return m


# %% right: merged_by_identity
"""merge() applies the module to the identity."""
import copy

import torch
from torch import nn


class Lora(nn.Module):
    """einsum, x scaled first; merge by applying the module to the identity."""

    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.scale = alpha / rank
        self.A = nn.Parameter(torch.rand(linear.in_features, rank) - 0.5)
        self.B = nn.Parameter(torch.zeros(rank, linear.out_features))
        self.frozen = linear.requires_grad_(False)

    def forward(self, x):
        return self.frozen(x) + torch.einsum("...i,ir,ro->...o", x * self.scale, self.A, self.B)

    @torch.no_grad()
    def merge(self):
        eye = torch.eye(self.frozen.in_features)
        columns = self(eye)
        merged = copy.deepcopy(self.frozen)
        if merged.bias is not None:
            columns = columns - merged.bias
        merged.weight.copy_(columns.T)
        merged.requires_grad_(True)
        return merged


# %% wrong: no_gradient_through_the_adapter
"""x is detached before the adapter. [earns 2]"""
import copy

import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + self.scale * (x.detach() @ self.a.T @ self.b.T)

    def merge(self):
        has_bias = self.linear.bias is not None
        merged = nn.Linear(self.linear.in_features, self.linear.out_features, bias=has_bias)
        merged.load_state_dict(self.linear.state_dict())
        with torch.no_grad():
            merged.weight += self.scale * self.b @ self.a
        return merged


# %% wrong: list_bias_unfrozen
"""The layer is in a list, and its bias isn't frozen. [earns 2]"""
import copy

import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self._l = [linear]
        linear.weight.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self._l[0](x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        has_bias = self._l[0].bias is not None
        merged = nn.Linear(self._l[0].in_features, self._l[0].out_features, bias=has_bias)
        merged.load_state_dict(self._l[0].state_dict())
        with torch.no_grad():
            merged.weight += self.scale * self.b @ self.a
        return merged


# %% right: buffers
"""Weight and bias are buffers."""
import torch
from torch import nn


class Lora(nn.Module):
    """Weight and bias as buffers that share the layer's memory."""

    def __init__(self, linear, rank, alpha):
        super().__init__()
        linear.requires_grad_(False)
        self.register_buffer("weight", linear.weight.detach())
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach())
        out_features, in_features = self.weight.shape
        self.a = nn.Parameter(0.02 * torch.randn(rank, in_features))
        self.b = nn.Parameter(torch.zeros(out_features, rank))
        self.ratio = float(alpha) / float(rank)

    def forward(self, x):
        y = x.matmul(self.weight.t())
        if self.bias is not None:
            y = y + self.bias
        return y + (x @ self.a.t()) @ (self.b.t() * self.ratio)

    def merge(self):
        m = nn.Linear(self.weight.shape[1], self.weight.shape[0], bias=self.bias is not None)
        m.weight = nn.Parameter((self.weight + self.ratio * self.b @ self.a).detach(), requires_grad=False)
        if self.bias is not None:
            m.bias = nn.Parameter(self.bias.clone(), requires_grad=False)
        return m


# %% wrong: merge_returns_lambda
"""merge() returns a function. [earns 2]"""
import copy

import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        return lambda x: self(x)


# %% wrong: merge_returns_copy
"""merge() returns a copy of the adapter. [earns 2]"""
import copy

import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        return copy.deepcopy(self)


# %% wrong: merge_in_place_flag
"""merge() merges in place, and returns nothing. [earns 2]"""
import copy

import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.merged = False
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        if self.merged:
            return self.linear(x)
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        self.merged = True
        with torch.no_grad():
            self.linear.weight += self.scale * self.b @ self.a


# %% right: sequential
"""Two linear layers in a Sequential; the factor is a buffer."""

import copy
import torch
import torch.nn.functional as F
from torch import nn

class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        for p in linear.parameters():
            p.requires_grad = False
        self.base = linear
        self.adapter = nn.Sequential(nn.Linear(linear.in_features, rank, bias=False), nn.Linear(rank, linear.out_features, bias=False))
        nn.init.zeros_(self.adapter[1].weight)
        self.register_buffer("factor", torch.tensor(alpha / rank))

    def forward(self, x):
        return torch.add(self.base(x), self.adapter(x) * self.factor)

    @torch.no_grad()
    def merge(self):
        new = copy.deepcopy(self.base)
        new.weight.add_(self.adapter[1].weight @ self.adapter[0].weight * self.factor)
        return new


# %% wrong: rounded_scale
"""alpha / rank is rounded. [earns 2]"""

import torch
from torch import nn

class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = round(alpha / rank)
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        merged = nn.Linear(self.linear.in_features, self.linear.out_features, bias=self.linear.bias is not None)
        merged.load_state_dict(self.linear.state_dict())
        with torch.no_grad():
            merged.weight += self.scale * self.b @ self.a
        return merged


# %% wrong: merged_once
"""merge() returns the layer of its first call, which was before training. [earns 2]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.base = linear.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, linear.in_features) / rank)
        self.B = nn.Parameter(torch.zeros(linear.out_features, rank))
        self.factor = alpha / rank
        self.merged = []

    def forward(self, x):
        return self.base(x) + self.factor * (x @ self.A.T @ self.B.T)

    def merge(self):
        if self.merged:
            return self.merged[0]
        base = self.base
        merged = nn.Linear(base.in_features, base.out_features, bias=base.bias is not None)
        with torch.no_grad():
            merged.weight.copy_(base.weight + self.factor * self.B @ self.A)
            if base.bias is not None:
                merged.bias.copy_(base.bias)
        self.merged.append(merged)
        return merged


# %% wrong: rank_1_fails
"""A rank of 1 loses its dimension, and the product fails. [earns 1]"""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.base = linear.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, linear.in_features) / rank)
        self.B = nn.Parameter(torch.zeros(linear.out_features, rank))
        self.factor = alpha / rank

    def forward(self, x):
        return self.base(x) + self.factor * (x @ self.A.squeeze().T @ self.B.squeeze().T)

    def merge(self):
        base = self.base
        merged = nn.Linear(base.in_features, base.out_features, bias=base.bias is not None)
        with torch.no_grad():
            merged.weight.copy_(base.weight + self.factor * self.B @ self.A)
            if base.bias is not None:
                merged.bias.copy_(base.bias)
        return merged


# %% right: merged_in_a_shared_weight
"""The merged layer shares the frozen layer's weight, and adds to it."""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / rank)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        has_bias = self.linear.bias is not None
        merged = nn.Linear(self.linear.in_features, self.linear.out_features, bias=has_bias)
        merged.weight, merged.bias = self.linear.weight, self.linear.bias
        with torch.no_grad():
            merged.weight += self.scale * self.b @ self.a
        return merged


# %% right: merged_shares_the_bias
"""merge() makes a new weight, and shares the frozen bias."""
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / rank)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merge(self):
        has_bias = self.linear.bias is not None
        merged = nn.Linear(self.linear.in_features, self.linear.out_features, bias=has_bias)
        merged.weight = nn.Parameter((self.linear.weight + self.scale * self.b @ self.a).detach())
        merged.bias = self.linear.bias
        return merged
