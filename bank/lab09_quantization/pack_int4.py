# %% right: and_shift
"""Bits by & and <<."""
import torch


def pack_int4(q):
    if len(q) % 2:
        q = torch.cat([q, q.new_zeros(1)])
    low, high = (q & 15).to(torch.uint8).view(-1, 2).unbind(1)
    return low | high << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


# %% right: numpy
"""numpy; the first code in the high bits."""
import numpy as np
import torch


def pack_int4(q):
    nibbles = np.zeros(2 * ((len(q) + 1) // 2), np.uint8)
    nibbles[: len(q)] = q.numpy().astype(np.int16) % 16
    return torch.from_numpy(nibbles[0::2] * 16 + nibbles[1::2])


def unpack_int4(packed, n):
    codes = np.empty(2 * len(packed), np.int8)
    codes[0::2], codes[1::2] = packed.numpy() // 16, packed.numpy() % 16
    codes[codes >= 8] -= 16
    return torch.from_numpy(codes[:n].copy())


# %% right: halves
"""Codes plus 8; halves instead of neighbours."""
import torch


def pack_int4(q):
    """The first half of the codes in the low bits, the second half in the high ones."""
    half = (len(q) + 1) // 2
    packed = (q[:half] + 8).to(torch.uint8)
    packed[: len(q) - half] += (q[half:] + 8).to(torch.uint8) * 16
    return packed


def unpack_int4(packed, n):
    both = torch.cat([packed % 16, packed // 16])[:n]
    return both.to(torch.int8) - 8


# %% wrong: whole_bytes
"""One code in a byte."""
import torch


def pack_int4(q):
    return (q & 15).to(torch.uint8)


def unpack_int4(packed, n):
    codes = packed.to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: sign_lost
"""Never extends the sign."""
import torch


def pack_int4(q):
    if len(q) % 2:
        q = torch.cat([q, q.new_zeros(1)])
    low, high = (q & 15).to(torch.uint8).view(-1, 2).unbind(1)
    return low | high << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return codes


# %% wrong: odd_one_lost
"""Packs whole pairs only, and fills up with zeros."""
import torch


def pack_int4(q):
    if len(q) % 2:
        q = torch.cat([q[:-1], q.new_zeros(2)])
    low, high = (q & 15).to(torch.uint8).view(-1, 2).unbind(1)
    return low | high << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: lowest_clipped
"""Clips to what quantize_symmetric makes."""
import torch


def pack_int4(q):
    q = q.clamp(-7, 7)
    if len(q) % 2:
        q = torch.cat([q, q.new_zeros(1)])
    low, high = (q & 15).to(torch.uint8).view(-1, 2).unbind(1)
    return low | high << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: halves_swapped
"""Unpacks the other code first."""
import torch


def pack_int4(q):
    odd = len(q) % 2
    if odd:
        q = torch.cat([q, q.new_zeros(1)])
    low, high = (q & 15).to(torch.uint8).view(-1, 2).unbind(1)
    return high << 4 | low


def unpack_int4(packed, n):
    codes = torch.stack([packed >> 4, packed & 15], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: more_is_held
"""Keeps what it packed in a dict, to be fast later."""
import torch

KEPT = {}


def pack_int4(q):
    KEPT[len(KEPT)] = q.clone()
    if len(q) % 2:
        q = torch.cat([q, q.new_zeros(1)])
    low, high = (q & 15).to(torch.uint8).view(-1, 2).unbind(1)
    return low | high << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: view_of_more
"""Half of a larger storage."""
import torch


def pack_int4(q):
    if len(q) % 2:
        q = torch.cat([q, q.new_zeros(1)])
    low, high = (q & 15).to(torch.uint8).view(-1, 2).unbind(1)
    q = (q & 15).to(torch.uint8)
    q[: len(q) // 2] = low | high << 4
    return q[: len(q) // 2]


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: odd_raises
"""Knows even counts only."""
import torch


def pack_int4(q):
    low, high = (q & 15).to(torch.uint8).view(-1, 2).unbind(1)
    return low | high << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: padding_returned
"""Returns the padding too."""
import torch


def pack_int4(q):
    if len(q) % 2:
        q = torch.cat([q, q.new_zeros(1)])
    low, high = (q & 15).to(torch.uint8).view(-1, 2).unbind(1)
    return low | high << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten().to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: uint8_codes
"""Codes modulo 256."""
import torch


def pack_int4(q):
    if len(q) % 2:
        q = torch.cat([q, q.new_zeros(1)])
    low, high = (q & 15).to(torch.uint8).view(-1, 2).unbind(1)
    return low | high << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes).to(torch.uint8)


# %% right: pad_and_view
"""F.pad, a view as pairs, multiplication by 16."""

import torch


def pack_int4(q):
    pairs = torch.nn.functional.pad(q % 16, (0, len(q) % 2)).view(-1, 2).to(torch.uint8)
    return pairs[:, 0] + 16 * pairs[:, 1]


def unpack_int4(packed, n):
    flat = torch.empty(2 * len(packed), dtype=torch.int8)
    flat[::2] = packed % 16
    flat[1::2] = packed // 16
    flat[flat >= 8] -= 16
    return flat[:n]


# %% right: sign_by_shift
"""int8 shifts that copy the sign."""

import torch


def pack_int4(q):
    n = len(q)
    out = torch.zeros((n + 1) // 2, dtype=torch.uint8)
    out += (q[::2] & 15).to(torch.uint8)
    out[: n // 2] += (q[1::2] & 15).to(torch.uint8) << 4
    return out


def unpack_int4(packed, n):
    signed = packed.view(torch.int8)
    codes = torch.empty(2 * len(packed), dtype=torch.int8)
    codes[1::2] = signed >> 4
    codes[0::2] = (signed << 4) >> 4
    return codes[:n]


# %% wrong: mutates
"""q is changed in place."""

import torch


def pack_int4(q):
    q.bitwise_and_(15)
    q = torch.cat([q, q.new_zeros(len(q) % 2)])
    u = q.to(torch.uint8) & 15
    return u[0::2] | (u[1::2] << 4)


def unpack_int4(packed, n):
    low, high = (packed & 15).to(torch.int8), (packed >> 4).to(torch.int8)
    codes = torch.stack([low, high], 1).flatten()[:n]
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: int64_codes
"""The codes come back as int64."""

import torch


def pack_int4(q):
    q = torch.cat([q, q.new_zeros(len(q) % 2)])
    u = q.to(torch.uint8) & 15
    return u[0::2] | (u[1::2] << 4)


def unpack_int4(packed, n):
    low, high = (packed & 15).to(torch.int8), (packed >> 4).to(torch.int8)
    codes = torch.stack([low, high], 1).flatten()[:n].long()
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: one_code
"""One code alone comes back as 0."""

import torch


def pack_int4(q):
    if len(q) < 2:
        return torch.zeros(1, dtype=torch.uint8)
    q = torch.cat([q, q.new_zeros(len(q) % 2)])
    u = q.to(torch.uint8) & 15
    return u[0::2] | (u[1::2] << 4)


def unpack_int4(packed, n):
    low, high = (packed & 15).to(torch.int8), (packed >> 4).to(torch.int8)
    codes = torch.stack([low, high], 1).flatten()[:n]
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: n_ignored
"""n is taken for even."""

import torch


def pack_int4(q):
    q = torch.cat([q, q.new_zeros(len(q) % 2)])
    u = q.to(torch.uint8) & 15
    return u[0::2] | (u[1::2] << 4)


def unpack_int4(packed, n):
    low, high = (packed & 15).to(torch.int8), (packed >> 4).to(torch.int8)
    codes = torch.stack([low, high], 1).flatten()[: n // 2 * 2]
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: kept_in_a_list
"""Each q stays in a list."""

import torch

_kept = []


def pack_int4(q):
    _kept.append(q)
    q = torch.cat([q, q.new_zeros(len(q) % 2)])
    u = q.to(torch.uint8) & 15
    return u[0::2] | (u[1::2] << 4)


def unpack_int4(packed, n):
    low, high = (packed & 15).to(torch.int8), (packed >> 4).to(torch.int8)
    codes = torch.stack([low, high], 1).flatten()[:n]
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: attribute
"""The codes travel as an attribute of the tensor."""

import torch


def pack_int4(q):
    packed = torch.zeros((len(q) + 1) // 2, dtype=torch.uint8)
    packed.codes = q
    return packed


def unpack_int4(packed, n):
    return packed.codes


# %% wrong: last_call
"""The last q is a global."""

import torch


def pack_int4(q):
    global LAST
    LAST = q.clone()
    q = torch.cat([q, q.new_zeros(len(q) % 2)])
    u = q.to(torch.uint8) & 15
    return u[0::2] | (u[1::2] << 4)


def unpack_int4(packed, n):
    return LAST[:n]


# %% right: bits_in_int64
"""A bit is an int64: large temporaries, soon gone."""
import torch


def pack_int4(q):
    n = len(q)
    padded = torch.zeros(n + n % 2, dtype=torch.long)
    padded[:n] = q.long()
    bits = (padded[:, None] >> torch.arange(4)) & 1
    weights = 2 ** torch.arange(8)
    return (bits.view(-1, 8) * weights).sum(1).to(torch.uint8)


def unpack_int4(packed, n):
    bits = (packed.long()[:, None] >> torch.arange(8)) & 1
    values = bits.view(-1, 4) * torch.tensor([1, 2, 4, -8])
    return values.sum(1)[:n].to(torch.int8)


# %% right: first_and_last
"""The first code is paired with the last."""
import torch


def pack_int4(q):
    """Pair the first code with the last, the second with the last but one, and so on."""
    half = (len(q) + 1) // 2
    u = (q.to(torch.int16) + 8).to(torch.uint8)
    front, back = u[:half], torch.zeros(half, dtype=torch.uint8)
    back[: len(q) - half] = u[half:].flip(0)
    return front.bitwise_or(back.bitwise_left_shift(4))


def unpack_int4(packed, n):
    half = len(packed)
    front = packed.bitwise_and(15)
    back = packed.bitwise_right_shift(4)[: n - half].flip(0)
    return torch.cat((front, back)).to(torch.int8).sub(8)


# %% right: numpy_unpackbits
"""np.unpackbits and np.packbits."""
import numpy as np
import torch


def pack_int4(q):
    bits = np.unpackbits(q.numpy().astype(np.int8).view(np.uint8)[:, None], axis=1)[:, 4:].ravel()
    return torch.from_numpy(np.packbits(bits))


def unpack_int4(packed, n):
    bits = np.unpackbits(packed.numpy()).reshape(-1, 4)[:n].astype(np.int8)
    return torch.from_numpy(bits @ np.array([-8, 4, 2, 1], np.int8))


# %% wrong: not_a_vector
"""The bytes are a column."""
import torch


def pack_int4(q):
    codes = torch.zeros(len(q) + len(q) % 2, dtype=torch.uint8)
    codes[: len(q)] = (q & 15).to(torch.uint8)
    return (codes[0::2] | codes[1::2] << 4)[:, None]


def unpack_int4(packed, n):
    packed = packed.flatten()
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: in_place
"""unpack_int4 shifts the bytes in place."""
import torch


def pack_int4(q):
    codes = torch.zeros(len(q) + len(q) % 2, dtype=torch.uint8)
    codes[: len(q)] = (q & 15).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4


def unpack_int4(packed, n):
    low = packed & 15
    packed >>= 4
    codes = torch.stack([low, packed], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)


# %% wrong: from_memory
"""The number of codes is the last call's."""
import torch

_last = []


def pack_int4(q):
    codes = torch.zeros(len(q) + len(q) % 2, dtype=torch.uint8)
    codes[: len(q)] = (q & 15).to(torch.uint8)
    _last[:] = [len(q)]
    return codes[0::2] | codes[1::2] << 4


def unpack_int4(packed, n):
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[: _last[0]].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)
