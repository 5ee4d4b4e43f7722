# %% right: equal_shares
"""Intervals with equal shares, their mean derivatives."""

import math

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()


class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        ctx.save_for_backward(pack(torch.bucketize(x, ends, out_int32=True), bits))
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        codes = unpack(*ctx.saved_tensors, ctx.bits, gradient.numel())
        return gradient * levels[codes].view_as(gradient), None


def few_bit_gelu(x, bits):
    return FewBitGelu.apply(x, bits)


# %% right: levels_first
"""Evenly spaced levels; each value takes the nearest one, so intervals aren't in order."""

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte)).view(
        -1, per_byte
    )
    packed = codes[:, 0].clone()
    for place in range(1, per_byte):
        packed |= codes[:, place] << (bits * place)
    return packed


def derivative(x):
    density = torch.exp(-0.5 * x * x) * 0.3989422804014327
    return torch.special.ndtr(x) + x * density


LOW, HIGH = -0.129, 1.129


class Staircase(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        n = 2**bits
        codes = ((derivative(x) - LOW) / (HIGH - LOW) * n).floor_().clamp_(0, n - 1)
        ctx.packed, ctx.bits, ctx.shape = pack(codes, bits), bits, x.shape
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        n = 2**ctx.bits
        places = [ctx.packed >> (ctx.bits * i) & (n - 1) for i in range(8 // ctx.bits)]
        codes = torch.stack(places, 1).flatten()[: gradient.numel()].view(ctx.shape)
        if n == 2:
            levels = torch.tensor([0.1325, 0.8675])
        else:
            levels = LOW + (torch.arange(n) + 0.5) * (HIGH - LOW) / n
        return gradient * levels[codes.int()], None


few_bit_gelu = Staircase.apply


# %% right: best_intervals
"""The ends of the intervals are found by Lloyd's rule."""

import math

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def intervals(bits):
    n, ends = 2**bits, None
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    codes = torch.arange(n).repeat_interleave(1000)
    for _ in range(3):
        count = torch.zeros(n, dtype=torch.float64).index_add(0, codes, torch.ones_like(x))
        levels = torch.zeros(n, dtype=torch.float64).index_add(0, codes, derivative) / count
        ends = [x[codes <= i].max() for i in range(n - 1)]
        middle = (levels[1:] + levels[:-1]) / 2
        inner = (x > -0.7) & (x < 1.4)
        moved = torch.stack([x[inner][(derivative[inner] - m).abs().argmin()] for m in middle])
        if bits > 1 or not (moved.diff() > 0).all():
            break
        codes = torch.bucketize(x, moved)
    return torch.stack(ends).float(), levels.float()


class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        ctx.save_for_backward(pack(torch.bucketize(x, ends, out_int32=True), bits))
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        codes = unpack(*ctx.saved_tensors, ctx.bits, gradient.numel())
        return gradient * levels[codes].view_as(gradient), None


def few_bit_gelu(x, bits):
    return FewBitGelu.apply(x, bits)


# %% right: levels_in_float64
"""Levels stay in float64, so backward multiplies float32 by float64."""

import math

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def table(bits):
    n = 2**bits
    shares = (torch.arange(2000 * n, dtype=torch.float64) + 0.5) / (2000 * n)
    x = torch.special.ndtri(shares)
    slope = torch.special.ndtr(x) + x * torch.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n, dtype=torch.float64) / n)
    return ends, slope.view(n, -1).mean(1)


class Staircase(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, levels = table(bits)
        packed = pack(torch.bucketize(x, ends), bits)
        ctx.save_for_backward(packed, levels)
        ctx.bits = bits
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        packed, levels = ctx.saved_tensors
        codes = unpack(packed, ctx.bits, gradient.numel())
        derivative = levels[codes].reshape(gradient.shape)
        return gradient * derivative, None


def few_bit_gelu(x, bits):
    return Staircase.apply(x, bits)


# %% wrong: another_output
"""The tanh form of GELU."""

import math

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()


class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        ctx.save_for_backward(pack(torch.bucketize(x, ends, out_int32=True), bits))
        return F.gelu(x, approximate="tanh")

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        codes = unpack(*ctx.saved_tensors, ctx.bits, gradient.numel())
        return gradient * levels[codes].view_as(gradient), None


def few_bit_gelu(x, bits):
    return FewBitGelu.apply(x, bits)


# %% wrong: keeps_x
"""x is saved, and rounded in backward."""

import math

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()


class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        ctx.save_for_backward(x)
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        ends, levels = intervals(ctx.bits)
        codes = torch.bucketize(ctx.saved_tensors[0], ends)
        return gradient * levels[codes].view_as(gradient), None


def few_bit_gelu(x, bits):
    return FewBitGelu.apply(x, bits)


# %% wrong: not_packed
"""A uint8 for each code."""

import math

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()


class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        ctx.save_for_backward(torch.bucketize(x, ends).to(torch.uint8))
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        codes = ctx.saved_tensors[0].long()
        return gradient * levels[codes].view_as(gradient), None


def few_bit_gelu(x, bits):
    return FewBitGelu.apply(x, bits)


# %% wrong: keeps_more
"""Codes of twice the bits are kept."""

import math

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()


class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        ctx.save_for_backward(pack(torch.bucketize(x, ends, out_int32=True), min(2 * bits, 4)))
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        codes = unpack(*ctx.saved_tensors, min(2 * ctx.bits, 4), gradient.numel())
        return gradient * levels[codes].view_as(gradient), None


def few_bit_gelu(x, bits):
    return FewBitGelu.apply(x, bits)


# %% wrong: more_values
"""Two more bits of levels than asked for."""

import math

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()


class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(min(2 * bits, 8))
        bits = min(2 * bits, 8)
        ctx.bits = bits
        ctx.save_for_backward(pack(torch.bucketize(x, ends, out_int32=True), bits))
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        codes = unpack(*ctx.saved_tensors, ctx.bits, gradient.numel())
        return gradient * levels[codes].view_as(gradient), None


def few_bit_gelu(x, bits):
    return FewBitGelu.apply(x, bits)


# %% wrong: fewer_values
"""One bit, whatever is asked for."""

import math

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()


class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        ctx.save_for_backward(pack(torch.bucketize(x, ends, out_int32=True), bits))
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        codes = unpack(*ctx.saved_tensors, ctx.bits, gradient.numel())
        return gradient * levels[codes].view_as(gradient), None


def few_bit_gelu(x, bits):
    return FewBitGelu.apply(x, 1)


# %% wrong: far_off
"""Evenly spaced ends from -4 to 4."""

import math

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.linspace(-4, 4, n + 1, dtype=torch.float64)
    x = (ends[1:] + ends[:-1]) / 2
    middle = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return ends[1:-1].float(), middle.float()


class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        ctx.save_for_backward(pack(torch.bucketize(x, ends, out_int32=True), bits))
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        codes = unpack(*ctx.saved_tensors, ctx.bits, gradient.numel())
        return gradient * levels[codes].view_as(gradient), None


def few_bit_gelu(x, bits):
    return FewBitGelu.apply(x, bits)


# %% wrong: incoming_gradient
"""Only the levels are returned."""

import math

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()


class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        ctx.save_for_backward(pack(torch.bucketize(x, ends, out_int32=True), bits))
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        codes = unpack(*ctx.saved_tensors, ctx.bits, gradient.numel())
        return levels[codes].view_as(gradient), None


def few_bit_gelu(x, bits):
    return FewBitGelu.apply(x, bits)


# %% right: bucketize
"""As hinted."""

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per))
    return (codes.view(-1, per) << bits * torch.arange(per, dtype=torch.uint8)).sum(
        1, dtype=torch.uint8
    )


def unpack(packed, bits, n):
    return (
        (packed[:, None] >> bits * torch.arange(8 // bits, dtype=torch.uint8) & 2**bits - 1)
        .flatten()[:n]
        .long()
    )


def table(bits):
    n = 2**bits
    ends = torch.special.ndtri(torch.arange(1, n, dtype=torch.float64) / n)
    u = (torch.arange(n * 4000, dtype=torch.float64) + 0.5) / (n * 4000)
    x = torch.special.ndtri(u)
    g = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / (2 * torch.pi) ** 0.5
    return ends.float(), g.view(n, -1).mean(1).float()


class Few(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = table(bits)
        ctx.save_for_backward(pack(torch.bucketize(x.detach().contiguous(), ends), bits))
        ctx.bits, ctx.shape = bits, x.shape
        return F.gelu(x)

    @staticmethod
    def backward(ctx, g):
        _, levels = table(ctx.bits)
        return g * levels[unpack(ctx.saved_tensors[0], ctx.bits, ctx.shape.numel())].view(
            ctx.shape
        ), None


def few_bit_gelu(x, bits):
    return Few.apply(x, bits)


# %% right: sum_of_comparisons
"""Codes as a sum of comparisons; levels cached."""

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per))
    return (codes.view(-1, per) << bits * torch.arange(per, dtype=torch.uint8)).sum(
        1, dtype=torch.uint8
    )


def unpack(packed, bits, n):
    return (
        (packed[:, None] >> bits * torch.arange(8 // bits, dtype=torch.uint8) & 2**bits - 1)
        .flatten()[:n]
        .long()
    )


import functools


@functools.cache
def table(bits):
    n = 2**bits
    ends = torch.special.ndtri(torch.arange(1, n, dtype=torch.float64) / n)
    u = (torch.arange(n * 4000, dtype=torch.float64) + 0.5) / (n * 4000)
    x = torch.special.ndtri(u)
    g = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / (2 * torch.pi) ** 0.5
    return ends.float(), g.view(n, -1).mean(1).float()


class Few(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = table(bits)
        ctx.codes = pack(sum((x > e).to(torch.uint8) for e in ends), bits)
        ctx.bits, ctx.shape = bits, x.shape
        return F.gelu(x)

    @staticmethod
    def backward(ctx, g):
        _, levels = table(ctx.bits)
        return g * levels[unpack(ctx.codes, ctx.bits, ctx.shape.numel())].view(ctx.shape), None


def few_bit_gelu(x, bits):
    return Few.apply(x, bits)


# %% wrong: codes_on_the_class
"""Codes on the class: layers share them."""

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per))
    return (codes.view(-1, per) << bits * torch.arange(per, dtype=torch.uint8)).sum(
        1, dtype=torch.uint8
    )


def unpack(packed, bits, n):
    return (
        (packed[:, None] >> bits * torch.arange(8 // bits, dtype=torch.uint8) & 2**bits - 1)
        .flatten()[:n]
        .long()
    )


def table(bits):
    n = 2**bits
    ends = torch.special.ndtri(torch.arange(1, n, dtype=torch.float64) / n)
    u = (torch.arange(n * 4000, dtype=torch.float64) + 0.5) / (n * 4000)
    x = torch.special.ndtri(u)
    g = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / (2 * torch.pi) ** 0.5
    return ends.float(), g.view(n, -1).mean(1).float()


class Few(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = table(bits)
        Few.codes = pack(torch.bucketize(x.detach(), ends), bits)
        ctx.bits, ctx.shape = bits, x.shape
        return F.gelu(x)

    @staticmethod
    def backward(ctx, g):
        _, levels = table(ctx.bits)
        return g * levels[unpack(Few.codes, ctx.bits, ctx.shape.numel())].view(ctx.shape), None


def few_bit_gelu(x, bits):
    return Few.apply(x, bits)


# %% wrong: uneven_steps
"""Equal steps of x from -4 to 4."""

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per))
    return (codes.view(-1, per) << bits * torch.arange(per, dtype=torch.uint8)).sum(
        1, dtype=torch.uint8
    )


def unpack(packed, bits, n):
    return (
        (packed[:, None] >> bits * torch.arange(8 // bits, dtype=torch.uint8) & 2**bits - 1)
        .flatten()[:n]
        .long()
    )


def table(bits):
    n = 2**bits
    ends = torch.linspace(-4, 4, n + 1, dtype=torch.float64)[1:-1]
    u = (torch.arange(n * 4000, dtype=torch.float64) + 0.5) / (n * 4000)
    x = torch.special.ndtri(u)
    g = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / (2 * torch.pi) ** 0.5
    return ends.float(), g.view(n, -1).mean(1).float()


class Few(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = table(bits)
        ctx.save_for_backward(pack(torch.bucketize(x.detach().contiguous(), ends), bits))
        ctx.bits, ctx.shape = bits, x.shape
        return F.gelu(x)

    @staticmethod
    def backward(ctx, g):
        _, levels = table(ctx.bits)
        return g * levels[unpack(ctx.saved_tensors[0], ctx.bits, ctx.shape.numel())].view(
            ctx.shape
        ), None


def few_bit_gelu(x, bits):
    return Few.apply(x, bits)


# %% wrong: gelu_tanh
"""The tanh approximation."""

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per))
    return (codes.view(-1, per) << bits * torch.arange(per, dtype=torch.uint8)).sum(
        1, dtype=torch.uint8
    )


def unpack(packed, bits, n):
    return (
        (packed[:, None] >> bits * torch.arange(8 // bits, dtype=torch.uint8) & 2**bits - 1)
        .flatten()[:n]
        .long()
    )


def table(bits):
    n = 2**bits
    ends = torch.special.ndtri(torch.arange(1, n, dtype=torch.float64) / n)
    u = (torch.arange(n * 4000, dtype=torch.float64) + 0.5) / (n * 4000)
    x = torch.special.ndtri(u)
    g = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / (2 * torch.pi) ** 0.5
    return ends.float(), g.view(n, -1).mean(1).float()


class Few(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = table(bits)
        ctx.save_for_backward(pack(torch.bucketize(x.detach().contiguous(), ends), bits))
        ctx.bits, ctx.shape = bits, x.shape
        return F.gelu(x, approximate="tanh")

    @staticmethod
    def backward(ctx, g):
        _, levels = table(ctx.bits)
        return g * levels[unpack(ctx.saved_tensors[0], ctx.bits, ctx.shape.numel())].view(
            ctx.shape
        ), None


def few_bit_gelu(x, bits):
    return Few.apply(x, bits)


# %% wrong: two_bits_always
"""Two bits always."""

import torch
from torch.nn import functional as F


def pack(codes, bits):
    per = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per))
    return (codes.view(-1, per) << bits * torch.arange(per, dtype=torch.uint8)).sum(
        1, dtype=torch.uint8
    )


def unpack(packed, bits, n):
    return (
        (packed[:, None] >> bits * torch.arange(8 // bits, dtype=torch.uint8) & 2**bits - 1)
        .flatten()[:n]
        .long()
    )


def table(bits):
    n = 2**bits
    ends = torch.special.ndtri(torch.arange(1, n, dtype=torch.float64) / n)
    u = (torch.arange(n * 4000, dtype=torch.float64) + 0.5) / (n * 4000)
    x = torch.special.ndtri(u)
    g = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / (2 * torch.pi) ** 0.5
    return ends.float(), g.view(n, -1).mean(1).float()


class Few(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = table(bits)
        ctx.save_for_backward(pack(torch.bucketize(x.detach().contiguous(), ends), bits))
        ctx.bits, ctx.shape = bits, x.shape
        return F.gelu(x)

    @staticmethod
    def backward(ctx, g):
        _, levels = table(ctx.bits)
        return g * levels[unpack(ctx.saved_tensors[0], ctx.bits, ctx.shape.numel())].view(
            ctx.shape
        ), None


def few_bit_gelu(x, bits):
    bits = 2
    return Few.apply(x, bits)


# %% right: bytes_packed
"""Codes are kept as packed bytes."""

import math

import torch
import torch.nn.functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()


class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        ctx.codes = pack(torch.bucketize(x, ends, out_int32=True), bits).numpy().tobytes()
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        codes = unpack(torch.frombuffer(bytearray(ctx.codes), dtype=torch.uint8), ctx.bits, gradient.numel())
        return gradient * levels[codes].view_as(gradient), None


def few_bit_gelu(x, bits):
    return FewBitGelu.apply(x, bits)


# %% wrong: bytes_not_packed
"""Codes are kept as bytes, one each."""

import math

import torch
import torch.nn.functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()


class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        ctx.codes = torch.bucketize(x, ends, out_int32=True).to(torch.uint8).numpy().tobytes()
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        codes = torch.frombuffer(bytearray(ctx.codes), dtype=torch.uint8).long()
        return gradient * levels[codes].view_as(gradient), None


def few_bit_gelu(x, bits):
    return FewBitGelu.apply(x, bits)


# %% right: numpy_bits
"""numpy's packbits; codes as an array in ctx."""

import math
import torch
import torch.nn.functional as F

def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)

def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()

def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()

class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        import numpy as np
        ctx.codes = np.packbits(((np.digitize(x.detach().numpy(), ends.numpy()).reshape(-1, 1) >> np.arange(bits)) & 1).astype(np.uint8))
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        import numpy as np
        bitsarr = np.unpackbits(ctx.codes)[: gradient.numel() * ctx.bits].reshape(-1, ctx.bits)
        codes = torch.from_numpy((bitsarr.astype(np.int64) << np.arange(ctx.bits)).sum(1))
        return gradient * levels[codes].view_as(gradient), None

def few_bit_gelu(x, bits):
    return FewBitGelu.apply(x, bits)


# %% wrong: matrices_only
"""Backward takes x for a matrix."""

import math
import torch
import torch.nn.functional as F

def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)

def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()

def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()

class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        ctx.save_for_backward(pack(torch.bucketize(x, ends), bits))
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        codes = unpack(*ctx.saved_tensors, ctx.bits, gradient.numel())
        return gradient * levels[codes].view(len(gradient), gradient.shape[1]), None

def few_bit_gelu(x, bits):
    y = FewBitGelu.apply(x, int(bits))
    return y


# %% wrong: levels_on_the_class
"""Levels and bits are kept on the class, so that another call with other bits changes backward."""
import math

import torch
import torch.nn.functional as F


def pack(codes, bits):
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


class FewBit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        n = 4096 * 2**bits
        middle = torch.special.ndtri((torch.arange(n, dtype=torch.float64) + 0.5) / n)
        density = torch.exp(-middle.square() / 2) / math.sqrt(2 * math.pi)
        slope = torch.special.ndtr(middle) + middle * density
        FewBit.bits, FewBit.levels = bits, slope.view(2**bits, -1).mean(1).float()
        ends = torch.special.ndtri(torch.arange(1, 2**bits) / 2**bits)
        ctx.save_for_backward(pack(torch.bucketize(x, ends), bits))
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        (packed,) = ctx.saved_tensors
        codes = unpack(packed, FewBit.bits, gradient.numel())
        return gradient * FewBit.levels[codes].view(gradient.shape), None


def few_bit_gelu(x, bits):
    return FewBit.apply(x, bits)
