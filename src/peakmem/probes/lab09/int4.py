"""Probe of lab 9's pack_int4: round trips, and many packed tensors held at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from peakmem.probes import Namespace, call_each
from peakmem.probes.lab09.values import decoding, on_tensors, storage_bytes, type_of
from peakmem.probes.metering import with_rises
from peakmem.probes.plain_tensor import plain_tensor

__all__ = ["pack_int4"]


def pack_int4(
    student: Namespace,
    calls: Sequence[Sequence[Any]] | None = None,
    large: Mapping[str, int] | None = None,
    metered: bool = True,
) -> Any:
    """Call `pack_int4(q)`, then `unpack_int4` on a copy of its result.

    For `calls`, a value is a dict: `type`, `stored_bytes` and the number of `dimensions` of the
    packed codes, `unpacked` and its `unpacked_type`, and `decodes` (see `values.decoding`). `large`
    has `n_tensors`, `n` and `seed`: that many tensors are packed, held at the same time, and then
    unpacked one by one. Returns `equal`, the number of exact round trips, and if `metered`,
    `rise_bytes` and `numpy_rise_bytes`.
    """
    if large is None:
        return call_each(on_tensors(lambda q: _there_and_back(student, q)), calls or [])
    _packed_at_once(student, **{**large, "n": 64})  # a warm-up: libraries allocate at first use
    return with_rises(lambda: _packed_at_once(student, **large), metered=metered)


def _there_and_back(student: Namespace, q: Tensor) -> dict[str, Any]:
    packed = student.pack_int4(q)
    form = {"type": type_of(packed), "stored_bytes": storage_bytes(packed)}
    # A copy, so that the packed tensor can't carry other data.
    copy = plain_tensor(packed).clone()
    unpacked, decodes = decoding(
        lambda: student.unpack_int4(copy, len(q)), [copy], lambda: student.pack_int4(~q[2:])
    )
    form |= {"dimensions": copy.ndim, "unpacked": unpacked, "unpacked_type": type_of(unpacked)}
    return {**form, "decodes": decodes}


def _packed_at_once(student: Namespace, n_tensors: int, n: int, seed: int) -> dict[str, int]:
    packed = [plain_tensor(student.pack_int4(_codes(n, seed + i))) for i in range(n_tensors)]
    equal = 0
    for i, codes in enumerate(packed):
        unpacked = plain_tensor(student.unpack_int4(codes, n))
        equal += torch.equal(unpacked.to(torch.int8), _codes(n, seed + i))
    return {"equal": equal}


def _codes(n: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-8, 8, (n,), generator=generator, dtype=torch.int8)
