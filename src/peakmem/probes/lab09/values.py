"""Probes of lab 9's functions of values: codes, scales, products, bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from peakmem.core.errors import NotDefined
from peakmem.probes import Calls, Namespace, Outcomes, call_each, calling
from peakmem.probes.plain_tensor import plain_tensor

__all__ = [
    "decoding",
    "flat",
    "int8_linear",
    "nf4",
    "on_tensors",
    "quantize_affine",
    "quantize_symmetric",
    "storage_bytes",
    "stored_bytes",
    "type_of",
]


def on_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with array arguments turned into tensors that share their memory.

    So comparing the arrays afterwards reveals writes into the tensors.
    """
    return lambda *arguments: function(
        *(torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments)
    )


def type_of(values: Any) -> str:
    """Return the name of a tensor's or an array's dtype, such as int8; else its type's name."""
    return str(getattr(values, "dtype", type(values).__name__)).removeprefix("torch.")


def flat(values: Any) -> list[float]:
    """Return a number, a tensor or an array of numbers as a list of floats."""
    return [float(value) for value in torch.as_tensor(values).detach().flatten().tolist()]


def quantize_symmetric(student: Namespace, calls: Calls) -> Outcomes:
    """Call `quantize_symmetric(x, bits, axis)`, then `dequantize` on its result.

    A value is a dict: `type` and `codes` of the first result; `scale` as a flat list, and its
    `shape` (empty without an axis, because any shape will do); `decoded`; and `decodes` (see
    `decoding`).
    """

    def there_and_back(x: Tensor, bits: int, axis: int | None) -> dict[str, Any]:
        given = (bits,) if axis is None else (bits, axis)
        codes, scale = student.quantize_symmetric(x, *given)
        form = {"type": type_of(codes), "codes": deepcopy(codes), "scale": flat(scale)}
        form["shape"] = _shape(scale, axis)
        decoded, decodes = decoding(
            lambda: student.dequantize(codes, scale),
            [codes, scale],
            lambda: student.quantize_symmetric(1 - x, *given),
        )
        return {**form, "decoded": decoded, "decodes": decodes}

    return call_each(on_tensors(there_and_back), calls)


def decoding(
    decode: Callable[[], Any], arguments: Sequence[Any], meanwhile: Callable[[], object]
) -> tuple[Any, str]:
    """Return what `decode` returns, and "alike" if it returns the same after another call.

    The text is "in place" instead if `decode` writes into `arguments`, and "from memory" if its
    results differ because of the call `meanwhile`, which encodes something else.
    """
    before = [plain_tensor(argument).clone() for argument in arguments]
    decoded = deepcopy(decode())
    if not all(map(_are_equal, before, arguments)):
        return decoded, "in place"
    meanwhile()
    return decoded, "alike" if _are_equal(decoded, decode()) else "from memory"


def _are_equal(one: Any, other: Any) -> bool:
    one, other = plain_tensor(one), plain_tensor(other)
    return one.shape == other.shape and bool(torch.isclose(one, other, 0, 0, True).all())


def quantize_affine(student: Namespace, calls: Calls) -> Outcomes:
    """Call `quantize_affine(x, bits, axis)` for each of `calls`.

    A value is a dict: `type` and `codes` of the first result; `scale` and `zero_point` as flat
    lists, and the `shape` of both (empty without an axis, because any shape will do); and whether
    subtracting the zero point from the codes would wrap around (`wraps`).
    """

    def call(x: Tensor, bits: int, axis: int | None) -> dict[str, Any]:
        given = (x, bits) if axis is None else (x, bits, axis)
        codes, scale, zero_point = student.quantize_affine(*given)
        form = {"type": type_of(codes), "codes": codes}
        wraps = type_of(zero_point) in ("uint8", "int8")
        shape = _shape(scale, axis) + _shape(zero_point, axis)
        steps = {"scale": flat(scale), "zero_point": flat(zero_point), "shape": shape}
        return {**form, **steps, "wraps": wraps}

    return call_each(on_tensors(call), calls)


def _shape(steps: Any, axis: int | None) -> list[int]:
    return [] if axis is None else list(torch.as_tensor(steps).shape)


def int8_linear(student: Namespace, calls: Calls) -> Outcomes:
    """Call `int8_linear(x, q, scale, threshold)` for each of `calls`."""
    return call_each(on_tensors(student.int8_linear), calls)


def nf4(student: Namespace, calls: Calls) -> Outcomes:
    """Call `nf4_encode(x, block)`, then `nf4_decode` on copies of its result.

    A value is a dict: `type` and `stored_bytes` of the packed codes, `absmax` as a flat list and
    its `absmax_type`, `decoded`, `decodes` (see `decoding`), whether the codes are where the bytes
    are (`reads_packed`), and the `table`, which may be "not defined". Without a block, the
    student's default applies.
    """

    def there_and_back(x: Tensor, block: int | None) -> dict[str, Any]:
        given = () if block is None else (block,)
        packed, absmax = student.nf4_encode(x, *given)
        form = {"type": type_of(packed), "stored_bytes": storage_bytes(packed)}
        copies = [plain_tensor(packed).clone(), plain_tensor(absmax).clone()]
        decoded, decodes = decoding(
            lambda: student.nf4_decode(*copies, len(x), *given),
            copies,
            lambda: student.nf4_encode(2 - x.repeat(2), 2 * (block or 64)),
        )
        form["reads_packed"] = _reads_packed(student.nf4_decode, copies, len(x), given)
        form["absmax_type"] = type_of(copies[1])
        form |= {"absmax": flat(absmax), "decoded": decoded, "decodes": decodes}
        return {**form, "table": _table(student)}

    return call_each(on_tensors(there_and_back), calls)


def _reads_packed(
    decode: Callable[..., Any], copies: Sequence[Tensor], n: int, given: Sequence[int]
) -> bool:
    """Tell whether `decode` reads the codes: another byte in one's place changes its two values.

    Codes that are kept elsewhere, under whatever key, have no such bytes.
    """
    packed, ones = copies[0], torch.ones_like(copies[1])  # a block of zeros would hide a change
    before = plain_tensor(decode(packed.clone(), ones, n, *given)).clone()

    def values_changed(place: int, byte: int) -> int:
        changed = packed.clone()
        changed[place] = byte
        return int((plain_tensor(decode(changed, ones, n, *given)) != before).sum())

    codes = packed.tolist()
    for place, old in enumerate(codes[:3] if len(codes) > 1 else []):
        # First bytes that occur: a wrong decoding may not know more. One may differ only in a code
        # that stands for no value, so others follow.
        others = [byte for byte in {*codes} if byte != old][:3]
        counts = (values_changed(place, byte) for byte in [*others, 255 - old])
        if next((count for count in counts if count), 0) not in (1, 2):
            return False
    return True


def _table(student: Namespace) -> Any:
    try:
        return np.array(flat(student.nf4_table()))
    except NotDefined:
        return "not defined"


stored_bytes = calling("stored_bytes")  # (n, scheme)


def storage_bytes(values: Any) -> int:
    """Return the bytes of a tensor's or an array's whole storage."""
    return int(plain_tensor(values).untyped_storage().nbytes())
