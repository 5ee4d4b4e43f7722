# %% right: clamped_range
"""A range that is clamped so that it holds 0."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [d for d in range(x.ndim) if d != axis]
    low = x.amin(dim=across, keepdim=True).clamp(max=0)
    high = x.amax(dim=across, keepdim=True).clamp(min=0)
    scale = (high - low) / top
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = (-low / scale).round()
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return q.to(torch.uint8), scale, zero_point


# %% right: numpy
"""numpy in float64."""
import numpy as np
import torch


def quantize_affine(x, bits, axis=None):
    v = x.numpy().astype(np.float64)
    others = tuple(d for d in range(v.ndim) if d != axis)
    low = np.minimum(v.min(axis=others, keepdims=True), 0)
    high = np.maximum(v.max(axis=others, keepdims=True), 0)
    step = (high - low) / (2**bits - 1)
    step[step == 0] = 1
    zero = np.rint(-low / step).astype(np.int64)
    codes = np.clip(np.rint(v / step) + zero, 0, 2**bits - 1).astype(np.uint8)
    return torch.tensor(codes), torch.tensor(step, dtype=torch.float32), torch.tensor(zero)


# %% right: python_numbers
"""Python's own rounding, value by value."""
import torch


def quantize_affine(x, bits, axis=None):
    """Steps and zero points without extra dimensions, and one of each as numbers."""
    def one(part):
        low, high = min(part.min().item(), 0.0), max(part.max().item(), 0.0)
        scale = (high - low) / (2**bits - 1) or 1.0
        zero = round(-low / scale)
        codes = [min(max(round(v / scale) + zero, 0), 2**bits - 1) for v in part.flatten().tolist()]
        return torch.tensor(codes, dtype=torch.uint8).reshape(part.shape), scale, zero

    if axis is None:
        return one(x)
    codes, scales, zeros = zip(*map(one, x.unbind(axis)))
    return torch.stack(codes, dim=axis), torch.tensor(scales), torch.tensor(zeros)


# %% right: rounded_sum
"""Adds the whole zero point before it rounds."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [d for d in range(x.ndim) if d != axis]
    low = x.amin(dim=across, keepdim=True).clamp(max=0)
    high = x.amax(dim=across, keepdim=True).clamp(min=0)
    scale = (high - low) / top
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = (-low / scale).round()
    q = (x / scale + zero_point).round().clamp(0, top)
    return q.to(torch.uint8), scale, zero_point


# %% wrong: zero_left_out
"""The range of the values alone."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [d for d in range(x.ndim) if d != axis]
    low = x.amin(dim=across, keepdim=True)
    high = x.amax(dim=across, keepdim=True)
    scale = (high - low) / top
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = (-low / scale).round()
    q = ((x - low) / scale).round().clamp(0, top)
    return q.to(torch.uint8), scale, zero_point


# %% wrong: zero_not_whole
"""A zero point between two codes."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [d for d in range(x.ndim) if d != axis]
    low = x.amin(dim=across, keepdim=True).clamp(max=0)
    high = x.amax(dim=across, keepdim=True).clamp(min=0)
    scale = (high - low) / top
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = -low / scale
    q = ((x - low) / scale).round().clamp(0, top)
    return q.to(torch.uint8), scale, zero_point


# %% wrong: levels_not_steps
"""As many steps as codes."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [d for d in range(x.ndim) if d != axis]
    low = x.amin(dim=across, keepdim=True).clamp(max=0)
    high = x.amax(dim=across, keepdim=True).clamp(min=0)
    scale = (high - low) / (top + 1)
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = (-low / scale).round()
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return q.to(torch.uint8), scale, zero_point


# %% wrong: both_sides_alike
"""The largest size, on both sides."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [d for d in range(x.ndim) if d != axis]
    low = x.amin(dim=across, keepdim=True).clamp(max=0)
    high = x.amax(dim=across, keepdim=True).clamp(min=0)
    scale = 2 * torch.maximum(high, -low) / top
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = torch.full_like(scale, 2 ** (bits - 1))
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return q.to(torch.uint8), scale, zero_point


# %% wrong: axis_ignored
"""One step for all."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [d for d in range(x.ndim)]
    low = x.amin(dim=across, keepdim=True).clamp(max=0)
    high = x.amax(dim=across, keepdim=True).clamp(min=0)
    scale = (high - low) / top
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = (-low / scale).round()
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return q.to(torch.uint8), scale, zero_point


# %% wrong: other_axis
"""Takes the range over the channels' own axis."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = list(range(x.ndim)) if axis is None else [axis]
    low = x.amin(dim=across, keepdim=True).clamp(max=0)
    high = x.amax(dim=across, keepdim=True).clamp(min=0)
    scale = (high - low) / top
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = (-low / scale).round()
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return q.to(torch.uint8), scale, zero_point


# %% wrong: eight_bits_always
"""Forgets bits."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 255
    across = [d for d in range(x.ndim) if d != axis]
    low = x.amin(dim=across, keepdim=True).clamp(max=0)
    high = x.amax(dim=across, keepdim=True).clamp(min=0)
    scale = (high - low) / top
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = (-low / scale).round()
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return q.to(torch.uint8), scale, zero_point


# %% wrong: signed_codes
"""int8."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [d for d in range(x.ndim) if d != axis]
    low = x.amin(dim=across, keepdim=True).clamp(max=0)
    high = x.amax(dim=across, keepdim=True).clamp(min=0)
    scale = (high - low) / top
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = (-low / scale).round()
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return (q - 128).to(torch.int8), scale, zero_point


# %% wrong: two_results
"""Forgets the zero point."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [d for d in range(x.ndim) if d != axis]
    low = x.amin(dim=across, keepdim=True).clamp(max=0)
    high = x.amax(dim=across, keepdim=True).clamp(min=0)
    scale = (high - low) / top
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = (-low / scale).round()
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return q.to(torch.uint8), scale


# %% wrong: low_as_zero_point
"""Returns the lowest value for the zero point."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [d for d in range(x.ndim) if d != axis]
    low = x.amin(dim=across, keepdim=True).clamp(max=0)
    high = x.amax(dim=across, keepdim=True).clamp(min=0)
    scale = (high - low) / top
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = (-low / scale).round()
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return q.to(torch.uint8), scale, low
