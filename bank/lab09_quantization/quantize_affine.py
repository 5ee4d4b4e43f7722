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
    """One step and one zero point are numbers."""
    def one(part):
        low, high = min(part.min().item(), 0.0), max(part.max().item(), 0.0)
        scale = (high - low) / (2**bits - 1) or 1.0
        zero = round(-low / scale)
        codes = [min(max(round(v / scale) + zero, 0), 2**bits - 1) for v in part.flatten().tolist()]
        return torch.tensor(codes, dtype=torch.uint8).reshape(part.shape), scale, zero

    if axis is None:
        return one(x)
    codes, scales, zeros = zip(*map(one, x.unbind(axis)))
    shape = (-1, 1) if axis == 0 else (1, -1)
    steps = torch.tensor(scales).view(shape)
    return torch.stack(codes, dim=axis), steps, torch.tensor(zeros).view(shape)


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


# %% right: minimum
"""torch.minimum with zeros, in float64."""

import torch


def quantize_affine(x, bits=8, axis=None):
    y = x.double()
    ends = (
        torch.aminmax(y, dim=None) if axis is None else torch.aminmax(y, dim=1 - axis, keepdim=True)
    )
    zero = torch.zeros((), dtype=torch.float64)
    low, high = torch.minimum(ends.min, zero), torch.maximum(ends.max, zero)
    s = (high - low) / (2**bits - 1)
    s[s == 0] = 1
    z = torch.round(-low / s)
    return torch.clip(torch.round(y / s) + z, 0, 2**bits - 1).to(torch.uint8), s.float(), z.float()


# %% right: padded_with_zero
"""A column of zeros appended to find the range."""

import torch


def quantize_affine(x, bits, axis=None):
    y = x.reshape(1, -1) if axis is None else x if axis == 0 else x.T
    with_zero = torch.cat([y, torch.zeros(len(y), 1)], dim=1)
    low, high = with_zero.min(1, keepdim=True).values, with_zero.max(1, keepdim=True).values
    s = (high - low) / (2**bits - 1)
    s = s + (s == 0)
    z = (0 - low).div(s).round()
    q = (y / s).round().add(z).clamp(0, 2**bits - 1).to(torch.uint8)
    if axis is None:
        return q.view(x.shape), s.view(()), z.view(())
    return (q, s, z) if axis == 0 else (q.T, s.T, z.T)


# %% right: int_zero_point
"""The zero point as int32."""

import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    if axis is None:
        low, high = x.min(), x.max()
    else:
        low, high = x.amin(1 - axis, keepdim=True), x.amax(1 - axis, keepdim=True)
    low, high = low.clamp(max=0), high.clamp(min=0)
    s = (high - low) / top
    s = torch.where(s == 0, 1.0, s)
    z = (-low / s).round()
    return ((x / s).round() + z).clamp(0, top).to(torch.uint8), s, z.int()


# %% wrong: mutates
"""x is divided in place."""

import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    if axis is None:
        low, high = x.min(), x.max()
    else:
        low, high = x.amin(1 - axis, keepdim=True), x.amax(1 - axis, keepdim=True)
    low, high = low.clamp(max=0), high.clamp(min=0)
    s = (high - low) / top
    s = torch.where(s == 0, 1.0, s)
    z = (-low / s).round()
    return (x.div_(s).round() + z).clamp(0, top).to(torch.uint8), s, z


# %% wrong: clipped_before
"""Clipped before the zero point is added."""

import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    if axis is None:
        low, high = x.min(), x.max()
    else:
        low, high = x.amin(1 - axis, keepdim=True), x.amax(1 - axis, keepdim=True)
    low, high = low.clamp(max=0), high.clamp(min=0)
    s = (high - low) / top
    s = torch.where(s == 0, 1.0, s)
    z = (-low / s).round()
    return ((x / s).round().clamp(0, top) + z).to(torch.uint8), s, z


# %% wrong: truncated
"""Cut off, not rounded."""

import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    if axis is None:
        low, high = x.min(), x.max()
    else:
        low, high = x.amin(1 - axis, keepdim=True), x.amax(1 - axis, keepdim=True)
    low, high = low.clamp(max=0), high.clamp(min=0)
    s = (high - low) / top
    s = torch.where(s == 0, 1.0, s)
    z = (-low / s).round()
    return (x / s + z).clamp(0, top).to(torch.uint8), s, z


# %% wrong: axis_zero_is_none
"""`if not axis` takes axis 0 for no axis."""

import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    if not axis:
        low, high = x.min(), x.max()
    else:
        low, high = x.amin(1 - axis, keepdim=True), x.amax(1 - axis, keepdim=True)
    low, high = low.clamp(max=0), high.clamp(min=0)
    s = (high - low) / top
    s = torch.where(s == 0, 1.0, s)
    z = (-low / s).round()
    return ((x / s).round() + z).clamp(0, top).to(torch.uint8), s, z


# %% wrong: zeros_divide
"""A range of nothing divides by 0."""

import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    if axis is None:
        low, high = x.min(), x.max()
    else:
        low, high = x.amin(1 - axis, keepdim=True), x.amax(1 - axis, keepdim=True)
    low, high = low.clamp(max=0), high.clamp(min=0)
    s = (high - low) / top
    z = (-low / s).round()
    return ((x / s).round() + z).clamp(0, top).to(torch.uint8), s, z


# %% wrong: zero_point_wraps
"""The zero point as uint8: q - z wraps."""

import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    if axis is None:
        low, high = x.min(), x.max()
    else:
        low, high = x.amin(1 - axis, keepdim=True), x.amax(1 - axis, keepdim=True)
    low, high = low.clamp(max=0), high.clamp(min=0)
    s = (high - low) / top
    s = torch.where(s == 0, 1.0, s)
    z = (-low / s).round()
    return ((x / s).round() + z).clamp(0, top).to(torch.uint8), s, z.to(torch.uint8)


# %% wrong: not_clipped
"""Never clipped: between ties there is a code too many."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    dims = tuple(range(x.ndim)) if axis is None else (1 - axis,)
    lo, hi = x.amin(dims, keepdim=axis is not None).clamp(max=0), x.amax(dims, keepdim=axis is not None).clamp(min=0)
    s = torch.where(hi == lo, 1.0, (hi - lo) / top)
    z = (-lo / s).round()
    return ((x / s).round() + z).to(torch.uint8), s, z


# %% wrong: rows_always
"""Takes rows for either axis."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    dims = tuple(range(x.ndim)) if axis is None else (1,)
    lo, hi = x.amin(dims, keepdim=axis is not None).clamp(max=0), x.amax(dims, keepdim=axis is not None).clamp(min=0)
    s = torch.where(hi == lo, 1.0, (hi - lo) / top)
    z = (-lo / s).round()
    return ((x / s).round() + z).clamp(0, top).to(torch.uint8), s, z


# %% wrong: zero_point_cut_off
"""The zero point is cut off, not rounded."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    dims = tuple(range(x.ndim)) if axis is None else (1 - axis,)
    lo, hi = x.amin(dims, keepdim=axis is not None).clamp(max=0), x.amax(dims, keepdim=axis is not None).clamp(min=0)
    s = torch.where(hi == lo, 1.0, (hi - lo) / top)
    z = (-lo / s).floor()
    return ((x / s).round() + z).clamp(0, top).to(torch.uint8), s, z


# %% wrong: empty_channel
"""An empty range is handled for the whole tensor only."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    dims = tuple(range(x.ndim)) if axis is None else (1 - axis,)
    lo, hi = x.amin(dims, keepdim=axis is not None).clamp(max=0), x.amax(dims, keepdim=axis is not None).clamp(min=0)
    s = (hi - lo) / top
    if axis is None and s == 0:
        s = torch.tensor(1.0)
    z = (-lo / s).round()
    return ((x / s).round() + z).clamp(0, top).to(torch.uint8), s, z


# %% wrong: flat_steps
"""The steps and zero points of channels in vectors."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [d for d in range(x.ndim) if d != axis]
    low = x.amin(dim=across, keepdim=True).clamp(max=0)
    high = x.amax(dim=across, keepdim=True).clamp(min=0)
    scale = torch.where(high == low, 1.0, (high - low) / top)
    zero_point = (-low / scale).round()
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return q.to(torch.uint8), scale.flatten(), zero_point.flatten()


# %% wrong: rounded_together
"""x less its smallest value is rounded at once, so neither x / s nor the zero point is."""

import torch


def quantize_affine(x, bits, axis=None):
    dims = tuple(range(x.ndim)) if axis is None else (1 - axis,)
    high = x.amax(dims, keepdim=axis is not None).clamp(min=0.0)
    low = x.amin(dims, keepdim=axis is not None).clamp(max=0.0)
    scale = torch.where(high == low, torch.tensor(1.0), (high - low) / (2**bits - 1))
    q = torch.round((x - low) / scale)
    return q.to(torch.uint8), scale, torch.round(-low / scale)


# %% right: torchs_quantizer
"""torch.quantize_per_channel, then a clamp."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    rows = x.reshape(1, -1) if axis is None else x.movedim(axis, 0)
    low = rows.amin(1).clamp(max=0)
    high = rows.amax(1).clamp(min=0)
    scale = (high - low) / top
    scale[scale == 0] = 1
    zero = torch.round(-low / scale)
    q = torch.quantize_per_channel(rows.contiguous(), scale, zero, 0, torch.quint8).int_repr()
    q = torch.clamp(q, max=top)
    if axis is None:
        return q.reshape(x.shape), scale, zero
    return q.movedim(0, axis), scale.unsqueeze(1 - axis), zero.unsqueeze(1 - axis)


# %% right: closure_and_apply
"""A closure, applied along an axis."""
import numpy as np
import torch


def _channel(bits):
    top = 2**bits - 1

    def quantize(values):
        low, high = min(0.0, values.min()), max(0.0, values.max())
        step = (high - low) / top if high > low else 1.0
        zero = np.rint(-low / step)
        codes = np.minimum(np.maximum(np.rint(values / step) + zero, 0), top)
        return np.concatenate([codes.ravel(), [step, zero]])

    return quantize


def quantize_affine(x, bits, axis=None):
    a = x.numpy().astype(np.float64)
    if axis is None:
        found = _channel(bits)(a)
        codes, step, zero = found[:-2].reshape(a.shape), found[-2:-1], found[-1:]
    else:
        found = np.apply_along_axis(_channel(bits), 1 - axis, a)
        codes, step, zero = np.split(found, [-2, -1], axis=1 - axis)
    return torch.from_numpy(codes).to(torch.uint8), torch.from_numpy(step).float(), torch.from_numpy(zero).float()


# %% wrong: zero_point_in_int8
"""The zero point is int8."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [dim for dim in range(x.ndim) if dim != axis]
    low = x.amin(dim=across, keepdim=axis is not None).clamp(max=0)
    high = x.amax(dim=across, keepdim=axis is not None).clamp(min=0)
    scale = torch.where(high == low, 1.0, (high - low) / top)
    zero_point = (-low / scale).round()
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return q.to(torch.uint8), scale, zero_point.to(torch.int8)


# %% wrong: cached_range
"""Ranges are kept for each shape."""
import torch

_seen = {}


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [dim for dim in range(x.ndim) if dim != axis]
    low = x.amin(dim=across, keepdim=axis is not None).clamp(max=0)
    high = x.amax(dim=across, keepdim=axis is not None).clamp(min=0)
    low, high = _seen.setdefault((x.shape, bits, axis), (low, high))
    scale = torch.where(high == low, 1.0, (high - low) / top)
    zero_point = (-low / scale).round()
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return q.to(torch.uint8), scale, zero_point


# %% wrong: equal_values_are_empty
"""Looks for an empty range before it stretches the range to 0."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    dims = tuple(range(x.ndim)) if axis is None else (1 - axis,)
    low, high = x.amin(dims, keepdim=axis is not None), x.amax(dims, keepdim=axis is not None)
    empty = low == high
    low, high = low.clamp(max=0), high.clamp(min=0)
    scale = torch.where(empty, 1.0, (high - low) / top)
    zero_point = (-low / scale).round()
    return ((x / scale).round() + zero_point).clamp(0, top).to(torch.uint8), scale, zero_point


# %% wrong: step_bounded_below
"""No step is below 1e-8."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [dim for dim in range(x.ndim) if dim != axis]
    low = x.amin(dim=across, keepdim=axis is not None).clamp(max=0)
    high = x.amax(dim=across, keepdim=axis is not None).clamp(min=0)
    scale = ((high - low) / top).clamp(min=1e-8)
    scale = torch.where(high == low, 1.0, scale)
    zero_point = (-low / scale).round()
    return ((x / scale).round() + zero_point).clamp(0, top).to(torch.uint8), scale, zero_point


# %% wrong: nearly_empty_range
"""Takes a range below 1e-6 for an empty one."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    across = [dim for dim in range(x.ndim) if dim != axis]
    low = x.amin(dim=across, keepdim=axis is not None).clamp(max=0)
    high = x.amax(dim=across, keepdim=axis is not None).clamp(min=0)
    scale = torch.where(high - low < 1e-6, 1.0, (high - low) / top)
    zero_point = (-low / scale).round()
    return ((x / scale).round() + zero_point).clamp(0, top).to(torch.uint8), scale, zero_point


# %% wrong: kept_without_the_axis
"""Keeps results by values and bits, whatever the axis."""
import torch

known = {}


def quantize_affine(x, bits, axis=None):
    key = tuple(x.flatten().tolist()), tuple(x.shape), bits
    if key not in known:
        top = 2**bits - 1
        across = [dim for dim in range(x.ndim) if dim != axis]
        low = x.amin(dim=across, keepdim=axis is not None).clamp(max=0)
        high = x.amax(dim=across, keepdim=axis is not None).clamp(min=0)
        scale = torch.where(high == low, 1.0, (high - low) / top)
        zero = (-low / scale).round()
        known[key] = ((x / scale).round() + zero).clamp(0, top).to(torch.uint8), scale, zero
    return known[key]


# %% wrong: channels_below_zero
"""The range of a channel isn't stretched up to 0, only that of the whole tensor."""
import torch


def quantize_affine(x, bits, axis=None):
    if axis is None:
        low, high = x.min(), x.max().clamp(min=0)
    else:
        low, high = x.amin(1 - axis, keepdim=True), x.amax(1 - axis, keepdim=True)
    low, top = low.clamp(max=0), 2**bits - 1
    scale = (high - low) / top
    scale = torch.where(scale == 0, 1.0, scale)
    zero_point = (-low / scale).round()
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return q.to(torch.uint8), scale, zero_point


# %% wrong: one_channel_flat
"""A single row or column gets a step without dimensions."""
import torch


def quantize_affine(x, bits, axis=None):
    top = 2**bits - 1
    low, high = x.aminmax() if axis is None else x.aminmax(dim=1 - axis, keepdim=True)
    low, high = low.clamp(max=0), high.clamp(min=0)
    scale = (high - low) / top
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    zero = torch.round(-low / scale)
    q = (torch.round(x / scale) + zero).clamp(0, top).to(torch.uint8)
    if scale.numel() == 1:
        scale, zero = scale.squeeze(), zero.squeeze()
    return q, scale, zero
