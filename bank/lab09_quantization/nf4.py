# %% right: quantiles
"""The table from quantiles, and the nearest entry."""
from statistics import NormalDist

import torch


def _table():
    normal, offset = NormalDist(), 0.9677083
    above = [normal.inv_cdf(offset + i * (0.5 - offset) / 8) for i in range(8)]
    below = [-normal.inv_cdf(offset + i * (0.5 - offset) / 7) for i in range(7)]
    values = torch.tensor(sorted([*below, 0.0, *above]))
    return values / values.max()


TABLE = _table()


def nf4_encode(x, block=64):
    rows = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = rows.abs().amax(1)
    divisor = torch.where(absmax == 0, 1.0, absmax)
    distance = ((rows / divisor[:, None])[..., None] - TABLE).abs()
    codes = distance.argmin(-1).flatten()[: len(x)]
    codes = torch.nn.functional.pad(codes, (0, len(x) % 2)).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return TABLE[codes] * absmax.repeat_interleave(block)[:n]


# %% right: printed_table
"""The printed table, and boundaries in the middle."""
import torch

TABLE = torch.tensor(
    [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453]
    + [-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0]
    + [0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224]
    + [0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]
)


def nf4_encode(x, block=64):
    sizes = torch.stack([part.abs().max() for part in x.split(block)])
    spread = sizes.repeat_interleave(block)[: len(x)]
    scaled = torch.where(spread > 0, x / spread, torch.zeros_like(x))
    codes = torch.bucketize(scaled, (TABLE[1:] + TABLE[:-1]) / 2).to(torch.uint8)
    if len(codes) % 2:
        codes = torch.cat([codes, codes[:1]])
    return codes[0::2] * 16 + codes[1::2], sizes


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.empty(2 * len(packed), dtype=torch.long)
    codes[0::2] = (packed // 16).long()
    codes[1::2] = (packed % 16).long()
    values = [TABLE[c] * s for c, s in zip(codes[:n].split(block), absmax)]
    return torch.cat(values)


# %% right: loops
"""Value by value."""
import numpy as np
import torch

TABLE = np.array(
    [-1.0, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0]
    + [0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0]
)


def nf4_encode(x, block=64):
    values, codes, sizes = x.numpy(), [], []
    for first in range(0, len(values), block):
        part = values[first : first + block]
        size = float(np.abs(part).max())
        sizes.append(size)
        codes += [int(np.abs(TABLE - (v / size if size else 0)).argmin()) for v in part]
    codes += [0] * (len(codes) % 2)
    packed = [16 * a + b for a, b in zip(codes[::2], codes[1::2])]
    return torch.tensor(packed, dtype=torch.uint8), torch.tensor(sizes)


def nf4_decode(packed, absmax, n, block=64):
    out = []
    for byte in packed.tolist():
        out += [byte >> 4, byte & 15]
    return torch.tensor([TABLE[c] * float(absmax[i // block]) for i, c in enumerate(out[:n])])


# %% wrong: even_steps
"""16 even steps."""
from statistics import NormalDist

import torch


def _table():
    normal, offset = NormalDist(), 0.9677083
    above = [normal.inv_cdf(offset + i * (0.5 - offset) / 8) for i in range(8)]
    below = [-normal.inv_cdf(offset + i * (0.5 - offset) / 7) for i in range(7)]
    values = torch.tensor(sorted([*below, 0.0, *above]))
    return torch.linspace(-1, 1, 16)


TABLE = _table()


def nf4_encode(x, block=64):
    rows = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = rows.abs().amax(1)
    divisor = torch.where(absmax == 0, 1.0, absmax)
    distance = ((rows / divisor[:, None])[..., None] - TABLE).abs()
    codes = distance.argmin(-1).flatten()[: len(x)]
    codes = torch.nn.functional.pad(codes, (0, len(x) % 2)).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return TABLE[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: int4_steps
"""The 15 codes of int4."""
from statistics import NormalDist

import torch


def _table():
    normal, offset = NormalDist(), 0.9677083
    above = [normal.inv_cdf(offset + i * (0.5 - offset) / 8) for i in range(8)]
    below = [-normal.inv_cdf(offset + i * (0.5 - offset) / 7) for i in range(7)]
    values = torch.tensor(sorted([*below, 0.0, *above]))
    return torch.arange(-7, 8) / 7


TABLE = _table()


def nf4_encode(x, block=64):
    rows = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = rows.abs().amax(1)
    divisor = torch.where(absmax == 0, 1.0, absmax)
    distance = ((rows / divisor[:, None])[..., None] - TABLE).abs()
    codes = distance.argmin(-1).flatten()[: len(x)]
    codes = torch.nn.functional.pad(codes, (0, len(x) % 2)).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return TABLE[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: mirrored_table
"""8 values below 0."""
from statistics import NormalDist

import torch


def _table():
    normal, offset = NormalDist(), 0.9677083
    above = [normal.inv_cdf(offset + i * (0.5 - offset) / 7) for i in range(7)]
    below = [-normal.inv_cdf(offset + i * (0.5 - offset) / 8) for i in range(8)]
    values = torch.tensor(sorted([*below, 0.0, *above]))
    return values / values.max()


TABLE = _table()


def nf4_encode(x, block=64):
    rows = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = rows.abs().amax(1)
    divisor = torch.where(absmax == 0, 1.0, absmax)
    distance = ((rows / divisor[:, None])[..., None] - TABLE).abs()
    codes = distance.argmin(-1).flatten()[: len(x)]
    codes = torch.nn.functional.pad(codes, (0, len(x) % 2)).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return TABLE[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: rounds_down
"""The next lower entry."""
from statistics import NormalDist

import torch


def _table():
    normal, offset = NormalDist(), 0.9677083
    above = [normal.inv_cdf(offset + i * (0.5 - offset) / 8) for i in range(8)]
    below = [-normal.inv_cdf(offset + i * (0.5 - offset) / 7) for i in range(7)]
    values = torch.tensor(sorted([*below, 0.0, *above]))
    return values / values.max()


TABLE = _table()


def nf4_encode(x, block=64):
    rows = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = rows.abs().amax(1)
    divisor = torch.where(absmax == 0, 1.0, absmax)
    distance = ((rows / divisor[:, None])[..., None] - TABLE).abs()
    scaled = (rows / divisor[:, None]).flatten()[: len(x)]
    codes = torch.searchsorted(TABLE, scaled, right=True) - 1
    codes = torch.nn.functional.pad(codes, (0, len(x) % 2)).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return TABLE[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: sign_of_largest
"""The largest value with its sign."""
from statistics import NormalDist

import torch


def _table():
    normal, offset = NormalDist(), 0.9677083
    above = [normal.inv_cdf(offset + i * (0.5 - offset) / 8) for i in range(8)]
    below = [-normal.inv_cdf(offset + i * (0.5 - offset) / 7) for i in range(7)]
    values = torch.tensor(sorted([*below, 0.0, *above]))
    return values / values.max()


TABLE = _table()


def nf4_encode(x, block=64):
    rows = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = rows.amax(1)
    divisor = torch.where(absmax == 0, 1.0, absmax)
    distance = ((rows / divisor[:, None])[..., None] - TABLE).abs()
    codes = distance.argmin(-1).flatten()[: len(x)]
    codes = torch.nn.functional.pad(codes, (0, len(x) % 2)).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return TABLE[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: whole_bytes
"""A byte a code."""
from statistics import NormalDist

import torch


def _table():
    normal, offset = NormalDist(), 0.9677083
    above = [normal.inv_cdf(offset + i * (0.5 - offset) / 8) for i in range(8)]
    below = [-normal.inv_cdf(offset + i * (0.5 - offset) / 7) for i in range(7)]
    values = torch.tensor(sorted([*below, 0.0, *above]))
    return values / values.max()


TABLE = _table()


def nf4_encode(x, block=64):
    rows = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = rows.abs().amax(1)
    divisor = torch.where(absmax == 0, 1.0, absmax)
    distance = ((rows / divisor[:, None])[..., None] - TABLE).abs()
    codes = distance.argmin(-1).flatten()[: len(x)]
    codes = codes.to(torch.uint8)
    return codes, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = packed.long()
    return TABLE[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: one_block
"""One size for all values."""
from statistics import NormalDist

import torch


def _table():
    normal, offset = NormalDist(), 0.9677083
    above = [normal.inv_cdf(offset + i * (0.5 - offset) / 8) for i in range(8)]
    below = [-normal.inv_cdf(offset + i * (0.5 - offset) / 7) for i in range(7)]
    values = torch.tensor(sorted([*below, 0.0, *above]))
    return values / values.max()


TABLE = _table()


def nf4_encode(x, block=64):
    block = len(x)
    rows = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = rows.abs().amax(1)
    divisor = torch.where(absmax == 0, 1.0, absmax)
    distance = ((rows / divisor[:, None])[..., None] - TABLE).abs()
    codes = distance.argmin(-1).flatten()[: len(x)]
    codes = torch.nn.functional.pad(codes, (0, len(x) % 2)).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return TABLE[codes] * absmax


# %% wrong: block_ignored
"""Blocks of 64."""
from statistics import NormalDist

import torch


def _table():
    normal, offset = NormalDist(), 0.9677083
    above = [normal.inv_cdf(offset + i * (0.5 - offset) / 8) for i in range(8)]
    below = [-normal.inv_cdf(offset + i * (0.5 - offset) / 7) for i in range(7)]
    values = torch.tensor(sorted([*below, 0.0, *above]))
    return values / values.max()


TABLE = _table()


def nf4_encode(x, block=64):
    block = 64
    rows = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = rows.abs().amax(1)
    divisor = torch.where(absmax == 0, 1.0, absmax)
    distance = ((rows / divisor[:, None])[..., None] - TABLE).abs()
    codes = distance.argmin(-1).flatten()[: len(x)]
    codes = torch.nn.functional.pad(codes, (0, len(x) % 2)).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    block = 64
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return TABLE[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: last_block_lost
"""Whole blocks only; zeros for the rest."""
from statistics import NormalDist

import torch


def _table():
    normal, offset = NormalDist(), 0.9677083
    above = [normal.inv_cdf(offset + i * (0.5 - offset) / 8) for i in range(8)]
    below = [-normal.inv_cdf(offset + i * (0.5 - offset) / 7) for i in range(7)]
    values = torch.tensor(sorted([*below, 0.0, *above]))
    return values / values.max()


TABLE = _table()


def nf4_encode(x, block=64):
    rows = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = rows.abs().amax(1)
    divisor = torch.where(absmax == 0, 1.0, absmax)
    distance = ((rows / divisor[:, None])[..., None] - TABLE).abs()
    codes = distance.argmin(-1).flatten()[: len(x)]
    codes = torch.nn.functional.pad(codes, (0, len(x) % 2)).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    values = TABLE[codes] * absmax.repeat_interleave(block)[:n]
    values[n // block * block :] = 0
    return values


# %% wrong: squared_sizes
"""Root mean squares in place of the largest."""
from statistics import NormalDist

import torch


def _table():
    normal, offset = NormalDist(), 0.9677083
    above = [normal.inv_cdf(offset + i * (0.5 - offset) / 8) for i in range(8)]
    below = [-normal.inv_cdf(offset + i * (0.5 - offset) / 7) for i in range(7)]
    values = torch.tensor(sorted([*below, 0.0, *above]))
    return values / values.max()


TABLE = _table()


def nf4_encode(x, block=64):
    rows = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = rows.square().mean(1).sqrt()
    divisor = torch.where(absmax == 0, 1.0, absmax)
    distance = ((rows / divisor[:, None])[..., None] - TABLE).abs()
    codes = distance.argmin(-1).flatten()[: len(x)]
    codes = torch.nn.functional.pad(codes, (0, len(x) % 2)).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return TABLE[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: divides_by_zero
"""No answer for a block of zeros."""
from statistics import NormalDist

import torch


def _table():
    normal, offset = NormalDist(), 0.9677083
    above = [normal.inv_cdf(offset + i * (0.5 - offset) / 8) for i in range(8)]
    below = [-normal.inv_cdf(offset + i * (0.5 - offset) / 7) for i in range(7)]
    values = torch.tensor(sorted([*below, 0.0, *above]))
    return values / values.max()


TABLE = _table()


def nf4_encode(x, block=64):
    rows = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = rows.abs().amax(1)
    divisor = absmax
    distance = ((rows / divisor[:, None])[..., None] - TABLE).abs()
    codes = distance.argmin(-1).flatten()[: len(x)]
    codes = torch.nn.functional.pad(codes, (0, len(x) % 2)).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    spread = absmax.repeat_interleave(block)[:n]
    return TABLE[codes] * spread / spread * spread


# %% right: bucketize
"""Midpoints and bucketize."""

import statistics

import torch


def nf4_table():
    inv = statistics.NormalDist().inv_cdf
    o = 0.9677083
    up = [inv(p) for p in torch.linspace(o, 0.5, 9, dtype=torch.float64)[:-1].tolist()]
    down = [-inv(p) for p in torch.linspace(o, 0.5, 8, dtype=torch.float64)[:-1].tolist()]
    table = torch.tensor(sorted([*up, 0.0, *down]))
    return table / table.max()


def nf4_encode(x, block=64):
    n = len(x)
    blocks = torch.nn.functional.pad(x, (0, -n % block)).view(-1, block)
    absmax = blocks.abs().amax(1)
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)[:, None]
    codes = (
        torch.bucketize(scaled, (nf4_table()[1:] + nf4_table()[:-1]) / 2)
        .flatten()[:n]
        .to(torch.uint8)
    )
    codes = torch.nn.functional.pad(codes, (0, n % 2))
    return codes[::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return nf4_table()[codes] * absmax.repeat_interleave(block)[:n]


# %% right: searchsorted_blockwise
"""A loop over blocks, searchsorted, bytes by Python."""

import statistics

import torch


def nf4_table():
    inv = statistics.NormalDist().inv_cdf
    o = 0.9677083
    up = [inv(p) for p in torch.linspace(o, 0.5, 9, dtype=torch.float64)[:-1].tolist()]
    down = [-inv(p) for p in torch.linspace(o, 0.5, 8, dtype=torch.float64)[:-1].tolist()]
    table = torch.tensor(sorted([*up, 0.0, *down]))
    return table / table.max()


def nf4_encode(x, block=64):
    table = nf4_table()
    middle = (table[:-1] + table[1:]) / 2
    codes, absmax = [], []
    for part in x.split(block):
        a = part.abs().max()
        absmax.append(a.item())
        codes += torch.searchsorted(middle, part / a if a else part).tolist()
    codes += [0] * (len(codes) % 2)
    packed = torch.tensor([a + 16 * b for a, b in zip(codes[::2], codes[1::2])], dtype=torch.uint8)
    return packed, torch.tensor(absmax)


def nf4_decode(packed, absmax, n, block=64):
    table, out = nf4_table(), torch.empty(n)
    flat = [c for byte in packed.tolist() for c in (byte % 16, byte // 16)][:n]
    for i, code in enumerate(flat):
        out[i] = table[code] * absmax[i // block]
    return out


# %% wrong: block_64_only
"""block is taken for 64."""

import statistics

import torch


def nf4_table():
    inv = statistics.NormalDist().inv_cdf
    o = 0.9677083
    up = [inv(p) for p in torch.linspace(o, 0.5, 9, dtype=torch.float64)[:-1].tolist()]
    down = [-inv(p) for p in torch.linspace(o, 0.5, 8, dtype=torch.float64)[:-1].tolist()]
    table = torch.tensor(sorted([*up, 0.0, *down]))
    return table / table.max()


def nf4_encode(x, block=64):
    block = 64
    n = len(x)
    blocks = torch.nn.functional.pad(x, (0, -n % block)).view(-1, block)
    absmax = blocks.abs().amax(1)
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)[:, None]
    codes = (scaled[..., None] - nf4_table()).abs().argmin(-1).flatten()[:n].to(torch.uint8)
    codes = torch.nn.functional.pad(codes, (0, n % 2))
    return codes[::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    block = 64
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return nf4_table()[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: float16_absmax
"""absmax in float16."""

import statistics

import torch


def nf4_table():
    inv = statistics.NormalDist().inv_cdf
    o = 0.9677083
    up = [inv(p) for p in torch.linspace(o, 0.5, 9, dtype=torch.float64)[:-1].tolist()]
    down = [-inv(p) for p in torch.linspace(o, 0.5, 8, dtype=torch.float64)[:-1].tolist()]
    table = torch.tensor(sorted([*up, 0.0, *down]))
    return table / table.max()


def nf4_encode(x, block=64):
    n = len(x)
    blocks = torch.nn.functional.pad(x, (0, -n % block)).view(-1, block)
    absmax = blocks.abs().amax(1)
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)[:, None]
    codes = (scaled[..., None] - nf4_table()).abs().argmin(-1).flatten()[:n].to(torch.uint8)
    codes = torch.nn.functional.pad(codes, (0, n % 2))
    return codes[::2] | codes[1::2] << 4, absmax.half()


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return nf4_table()[codes] * absmax.float().repeat_interleave(block)[:n]


# %% wrong: absmax_of_the_block_before
"""A short last block takes the absmax of the block before it."""

import statistics

import torch


def nf4_table():
    inv = statistics.NormalDist().inv_cdf
    o = 0.9677083
    up = [inv(p) for p in torch.linspace(o, 0.5, 9, dtype=torch.float64)[:-1].tolist()]
    down = [-inv(p) for p in torch.linspace(o, 0.5, 8, dtype=torch.float64)[:-1].tolist()]
    table = torch.tensor(sorted([*up, 0.0, *down]))
    return table / table.max()


def nf4_encode(x, block=64):
    n = len(x)
    blocks = torch.nn.functional.pad(x, (0, -n % block)).view(-1, block)
    absmax = blocks.abs().amax(1)
    if n % block and len(absmax) > 1:
        absmax[-1] = absmax[-2]
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)[:, None]
    codes = (scaled[..., None] - nf4_table()).abs().argmin(-1).flatten()[:n].to(torch.uint8)
    codes = torch.nn.functional.pad(codes, (0, n % 2))
    return codes[::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return nf4_table()[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: default_block_32
"""The default block is 32."""

import statistics

import torch


def nf4_table():
    inv = statistics.NormalDist().inv_cdf
    o = 0.9677083
    up = [inv(p) for p in torch.linspace(o, 0.5, 9, dtype=torch.float64)[:-1].tolist()]
    down = [-inv(p) for p in torch.linspace(o, 0.5, 8, dtype=torch.float64)[:-1].tolist()]
    table = torch.tensor(sorted([*up, 0.0, *down]))
    return table / table.max()


def nf4_encode(x, block=32):
    n = len(x)
    blocks = torch.nn.functional.pad(x, (0, -n % block)).view(-1, block)
    absmax = blocks.abs().amax(1)
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)[:, None]
    codes = (scaled[..., None] - nf4_table()).abs().argmin(-1).flatten()[:n].to(torch.uint8)
    codes = torch.nn.functional.pad(codes, (0, n % 2))
    return codes[::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=32):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return nf4_table()[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: odd_lost
"""The last of an odd count is lost."""

import statistics

import torch


def nf4_table():
    inv = statistics.NormalDist().inv_cdf
    o = 0.9677083
    up = [inv(p) for p in torch.linspace(o, 0.5, 9, dtype=torch.float64)[:-1].tolist()]
    down = [-inv(p) for p in torch.linspace(o, 0.5, 8, dtype=torch.float64)[:-1].tolist()]
    table = torch.tensor(sorted([*up, 0.0, *down]))
    return table / table.max()


def nf4_encode(x, block=64):
    n = len(x)
    blocks = torch.nn.functional.pad(x, (0, -n % block)).view(-1, block)
    absmax = blocks.abs().amax(1)
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)[:, None]
    codes = (scaled[..., None] - nf4_table()).abs().argmin(-1).flatten()[:n].to(torch.uint8)
    half = n // 2 * 2
    return codes[:half:2] | codes[1:half:2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    codes = torch.nn.functional.pad(codes, (0, n - len(codes)), value=7)
    return nf4_table()[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: quantile_ends
"""An offset of 0.995."""

import statistics

import torch


def nf4_table():
    inv = statistics.NormalDist().inv_cdf
    o = 0.995
    up = [inv(p) for p in torch.linspace(o, 0.5, 9, dtype=torch.float64)[:-1].tolist()]
    down = [-inv(p) for p in torch.linspace(o, 0.5, 8, dtype=torch.float64)[:-1].tolist()]
    table = torch.tensor(sorted([*up, 0.0, *down]))
    return table / table.max()


def nf4_encode(x, block=64):
    n = len(x)
    blocks = torch.nn.functional.pad(x, (0, -n % block)).view(-1, block)
    absmax = blocks.abs().amax(1)
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)[:, None]
    codes = (scaled[..., None] - nf4_table()).abs().argmin(-1).flatten()[:n].to(torch.uint8)
    codes = torch.nn.functional.pad(codes, (0, n % 2))
    return codes[::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return nf4_table()[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: absmax_in_float64
"""An absmax of 8 bytes."""
import statistics
import torch


def nf4_table():
    quantile, o = statistics.NormalDist().inv_cdf, 0.9677083
    above = [quantile(o + i / 8 * (0.5 - o)) for i in range(8)]
    below = [-quantile(o + i / 7 * (0.5 - o)) for i in range(7)]
    return torch.tensor(sorted([*below, 0.0, *above])) / max(above)


def pack_int4(q):
    codes = torch.zeros(len(q) + len(q) % 2, dtype=torch.uint8)
    codes[: len(q)] = (q & 15).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


def nf4_encode(x, block=64):
    blocks = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = blocks.abs().amax(dim=1, keepdim=True)
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)
    codes = (scaled[..., None] - nf4_table()).abs().argmin(dim=-1)
    return pack_int4((codes.flatten()[: len(x)] - 8).to(torch.int8)), absmax.flatten().double()


def nf4_decode(packed, absmax, n, block=64):
    codes = unpack_int4(packed, n).long() + 8
    return nf4_table()[codes] * absmax.repeat_interleave(block)[:n]


# %% right: absmax_column
"""The absmax of blocks in a column."""
import statistics
import torch


def nf4_table():
    quantile, o = statistics.NormalDist().inv_cdf, 0.9677083
    above = [quantile(o + i / 8 * (0.5 - o)) for i in range(8)]
    below = [-quantile(o + i / 7 * (0.5 - o)) for i in range(7)]
    return torch.tensor(sorted([*below, 0.0, *above])) / max(above)


def pack_int4(q):
    codes = torch.zeros(len(q) + len(q) % 2, dtype=torch.uint8)
    codes[: len(q)] = (q & 15).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


def nf4_encode(x, block=64):
    blocks = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = blocks.abs().amax(dim=1, keepdim=True)
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)
    codes = (scaled[..., None] - nf4_table()).abs().argmin(dim=-1)
    return pack_int4((codes.flatten()[: len(x)] - 8).to(torch.int8)), absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = unpack_int4(packed, n).long() + 8
    return nf4_table()[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: decode_default_32
"""nf4_decode has another default than nf4_encode."""

import statistics

import torch


def nf4_table():
    quantile, o = statistics.NormalDist().inv_cdf, 0.9677083
    above = [quantile(o + (0.5 - o) * i / 8) for i in range(8)]
    below = [-quantile(o + (0.5 - o) * i / 7) for i in range(7)]
    table = torch.tensor(sorted([*below, 0.0, *above]))
    return table / table.max()


def nf4_encode(x, block=64):
    absmax = torch.stack([part.abs().max() for part in x.split(block)])
    each = absmax.repeat_interleave(block)[: len(x)]
    table = nf4_table()
    codes = torch.bucketize(x / each.clamp(min=1e-30), (table[1:] + table[:-1]) / 2)
    codes = torch.cat([codes, codes.new_zeros(len(x) % 2)]).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=32):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].long()
    return nf4_table()[codes] * absmax.repeat_interleave(block)[:n]


# %% right: table_as_list
"""nf4_table returns a list, and values go one by one."""
import statistics

import torch


def pack_int4(q):
    codes = torch.zeros(len(q) + len(q) % 2, dtype=torch.uint8)
    codes[: len(q)] = (q & 15).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


def nf4_table():
    d = statistics.NormalDist()
    o = 0.9677083
    step8, step7 = (o - 0.5) / 8, (o - 0.5) / 7
    values = [0.0]
    for i in range(8):
        values.append(d.inv_cdf(o - step8 * i))
    for i in range(7):
        values.append(-d.inv_cdf(o - step7 * i))
    return [v / max(values) for v in sorted(values)]


def nf4_encode(x, block=64):
    absmax, codes = [], []
    table = nf4_table()
    for start in range(0, len(x), block):
        values = x[start : start + block].tolist()
        size = max(abs(v) for v in values)
        absmax.append(size)
        codes += [min(range(16), key=lambda i: abs(table[i] * (size or 1) - v)) - 8 for v in values]
    return pack_int4(torch.tensor(codes, dtype=torch.int8)), torch.tensor(absmax, dtype=torch.float32)


def nf4_decode(packed, absmax, n, block=64):
    table = torch.tensor(nf4_table())
    q = unpack_int4(packed, n).to(torch.int64) + 8
    return table[q] * absmax[torch.arange(n) // block]


# %% right: closure_table
"""The table is made once, in a closure; cdist."""
import statistics

import torch


def pack_int4(q):
    codes = torch.zeros(len(q) + len(q) % 2, dtype=torch.uint8)
    codes[: len(q)] = (q & 15).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


def _make():
    table = None

    def nf4_table():
        nonlocal table
        if table is None:
            p = statistics.NormalDist().inv_cdf
            o = 0.9677083
            above = [p(0.5 + (o - 0.5) * i / 8) for i in range(1, 9)]
            below = [p(0.5 - (o - 0.5) * i / 7) for i in range(7, 0, -1)]
            table = torch.tensor([*below, 0, *above], dtype=torch.float32) / above[-1]
        return table.clone()

    return nf4_table


nf4_table = _make()


def nf4_encode(x, block=64):
    rows = torch.nn.functional.pad(x, (0, -len(x) % block)).reshape(-1, block)
    absmax = rows.abs().max(1).values
    table = nf4_table() * absmax[:, None]
    code = torch.cdist(rows[:, :, None], table[:, :, None], p=1).argmin(2)
    return pack_int4((code.reshape(-1)[: len(x)] - 8).to(torch.int8)), absmax


def nf4_decode(packed, absmax, n, block=64):
    index = (unpack_int4(packed, n).int() + 8).long()
    return torch.gather(nf4_table(), 0, index) * absmax.repeat_interleave(block)[:n]


# %% wrong: unsorted_table
"""The table isn't sorted, though all else fits it."""
import statistics

import torch


def pack_int4(q):
    codes = torch.zeros(len(q) + len(q) % 2, dtype=torch.uint8)
    codes[: len(q)] = (q & 15).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


def nf4_table():
    quantile, o = statistics.NormalDist().inv_cdf, 0.9677083
    above = [quantile(o + i / 8 * (0.5 - o)) for i in range(8)]
    below = [-quantile(o + i / 7 * (0.5 - o)) for i in range(7)]
    return torch.tensor([*below, 0.0, *above]) / max(above)


def nf4_encode(x, block=64):
    blocks = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = blocks.abs().amax(dim=1, keepdim=True)
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)
    codes = (scaled[..., None] - nf4_table()).abs().argmin(dim=-1)
    return pack_int4((codes.flatten()[: len(x)] - 8).to(torch.int8)), absmax.flatten()


def nf4_decode(packed, absmax, n, block=64):
    codes = unpack_int4(packed, n).long() + 8
    return nf4_table()[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: table_not_divided
"""nf4_table leaves the division to others."""
import statistics

import torch


def pack_int4(q):
    codes = torch.zeros(len(q) + len(q) % 2, dtype=torch.uint8)
    codes[: len(q)] = (q & 15).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


def nf4_table():
    quantile, o = statistics.NormalDist().inv_cdf, 0.9677083
    above = [quantile(o + i / 8 * (0.5 - o)) for i in range(8)]
    below = [-quantile(o + i / 7 * (0.5 - o)) for i in range(7)]
    return torch.tensor(sorted([*below, 0.0, *above]))


def nf4_encode(x, block=64):
    blocks = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = blocks.abs().amax(dim=1, keepdim=True)
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)
    codes = (scaled[..., None] - nf4_table() / nf4_table().max()).abs().argmin(dim=-1)
    return pack_int4((codes.flatten()[: len(x)] - 8).to(torch.int8)), absmax.flatten()


def nf4_decode(packed, absmax, n, block=64):
    codes = unpack_int4(packed, n).long() + 8
    return (nf4_table() / nf4_table().max())[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: in_place
"""nf4_decode clears the bytes."""
import statistics

import torch


def pack_int4(q):
    codes = torch.zeros(len(q) + len(q) % 2, dtype=torch.uint8)
    codes[: len(q)] = (q & 15).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


def nf4_table():
    quantile, o = statistics.NormalDist().inv_cdf, 0.9677083
    above = [quantile(o + i / 8 * (0.5 - o)) for i in range(8)]
    below = [-quantile(o + i / 7 * (0.5 - o)) for i in range(7)]
    return torch.tensor(sorted([*below, 0.0, *above])) / max(above)


def nf4_encode(x, block=64):
    blocks = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = blocks.abs().amax(dim=1, keepdim=True)
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)
    codes = (scaled[..., None] - nf4_table()).abs().argmin(dim=-1)
    return pack_int4((codes.flatten()[: len(x)] - 8).to(torch.int8)), absmax.flatten()


def nf4_decode(packed, absmax, n, block=64):
    codes = unpack_int4(packed, n).long() + 8
    packed.zero_()
    return nf4_table()[codes] * absmax.repeat_interleave(block)[:n]


# %% wrong: from_memory
"""nf4_decode takes the last call's absmax."""
import statistics

import torch


def pack_int4(q):
    codes = torch.zeros(len(q) + len(q) % 2, dtype=torch.uint8)
    codes[: len(q)] = (q & 15).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


def nf4_table():
    quantile, o = statistics.NormalDist().inv_cdf, 0.9677083
    above = [quantile(o + i / 8 * (0.5 - o)) for i in range(8)]
    below = [-quantile(o + i / 7 * (0.5 - o)) for i in range(7)]
    return torch.tensor(sorted([*below, 0.0, *above])) / max(above)


def nf4_encode(x, block=64):
    blocks = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = blocks.abs().amax(dim=1, keepdim=True)
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)
    codes = (scaled[..., None] - nf4_table()).abs().argmin(dim=-1)
    global _absmax
    _absmax = absmax.flatten()
    return pack_int4((codes.flatten()[: len(x)] - 8).to(torch.int8)), absmax.flatten()


def nf4_decode(packed, absmax, n, block=64):
    codes = unpack_int4(packed, n).long() + 8
    return nf4_table()[codes] * _absmax.repeat_interleave(block)[:n]


# %% wrong: each_block_packed
"""Packs each block's codes apart, so a block of an odd size ends in half a byte."""
import torch


def nf4_table():
    return torch.tensor(
        [-1, -0.69619280, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0]
        + [0.07958030, 0.16093020, 0.24611230, 0.33791524, 0.44070983, 0.56261700, 0.72295684, 1]
    )


def nf4_encode(x, block=64):
    packed, absmax = [], []
    for part in x.split(block):
        size = part.abs().max()
        scaled = part / (size if size > 0 else 1.0)
        codes = (scaled[:, None] - nf4_table()).abs().argmin(dim=1).to(torch.uint8)
        codes = torch.nn.functional.pad(codes, (0, len(codes) % 2))
        packed.append(codes[0::2] | codes[1::2] << 4)
        absmax.append(size)
    return torch.cat(packed), torch.stack(absmax)


def nf4_decode(packed, absmax, n, block=64):
    found = []
    for i, part in enumerate(packed.split((block + 1) // 2)):
        codes = torch.stack([part & 15, part >> 4], dim=1).flatten()
        codes = codes[: min(block, n - i * block)]
        found.append(nf4_table()[codes.long()] * absmax[i])
    return torch.cat(found)


# %% wrong: absmax_bounded
"""An absmax below 1e-5 is raised to it, so that a block of tiny values gets few codes."""
import statistics

import torch


def nf4_table():
    inverse = statistics.NormalDist().inv_cdf
    above = [inverse(0.9677083 - (0.9677083 - 0.5) * i / 8) for i in range(8)]
    below = [-inverse(0.9677083 - (0.9677083 - 0.5) * i / 7) for i in range(7)]
    return torch.tensor(sorted([*below, 0.0, *above])) / max(above)


def nf4_encode(x, block=64):
    n = len(x)
    rows = torch.nn.functional.pad(x, (0, -n % block)).view(-1, block)
    absmax = rows.abs().amax(1).clamp(min=1e-5)
    codes = ((rows / absmax[:, None])[..., None] - nf4_table()).abs().argmin(-1).flatten()[:n]
    codes = torch.nn.functional.pad(codes, (0, n % 2)).to(torch.uint8)
    return codes[::2] | codes[1::2] << 4, absmax


def nf4_decode(packed, absmax, n, block=64):
    codes = torch.stack([packed & 15, packed >> 4], 1).flatten()[:n].long()
    return nf4_table()[codes] * absmax.repeat_interleave(block)[:n]
