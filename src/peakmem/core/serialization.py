"""Plain data as bytes: the only data that passes between a student's process and the grader.

Plain data is None, bool, int, float (including -0.0, inf and NaN), str, bytes, list, tuple, set,
frozenset, dict, and numpy arrays of numbers. Its encoding is a line of JSON, in which a value that
JSON can't express carries a tag, followed by the raw bytes of the arrays in order. Decoding builds
data and never runs code: there is no pickle.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np

from peakmem.core.errors import PeakmemError

__all__ = ["PlainError", "decode", "encode"]

# Dtypes of arrays: bool, integers, floats, complex, in either byte order; no objects or records.
_DTYPES = {
    dtype.str: dtype
    for code in "?" + np.typecodes["AllInteger"] + np.typecodes["AllFloat"]
    for dtype in (np.dtype(code).newbyteorder("<"), np.dtype(code).newbyteorder(">"))
}
_COLLECTIONS = {"tuple": tuple, "set": set, "frozenset": frozenset}
_ATOMS = {bool, int, float, str, type(None)}
_KINDS = {*_ATOMS, bytes, list, dict, np.ndarray, *_COLLECTIONS.values()}
_ROWS = {list, tuple}
_SHORT = 8  # lists up to this length are faster to encode item by item
_MAX_DEPTH = 64
_MAX_DIMENSIONS = 64
_MAX_ROWS = 2**20  # of an array without elements: they cost no bytes, so nothing else bounds them
_MAX_KEYS = 1000  # of one set or dict: colliding keys can make its hash table take hours to build

# Its input comes from `_to_json`, so it contains no cycle.
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)


class PlainError(PeakmemError, ValueError):
    """A value is not plain data, or bytes are not an encoding of plain data."""


def encode(value: Any, *, around: int = 0) -> bytes:
    """Return plain data as bytes; numpy scalars are encoded as Python numbers.

    The outermost `around` levels don't count towards the nesting limit: they are the caller's
    envelope around the data.

    >>> decode(encode({"loss": float("inf"), 3: (1, 2)}))
    {'loss': inf, 3: (1, 2)}

    Raises PlainError, naming the type, if a value is not plain data.
    """
    arrays: list[Any] = []
    line = _ENCODER.encode(_to_json(value, -around, arrays)).encode()
    return b"".join((line, b"\n", *arrays)) if arrays else line


def decode(data: bytes | bytearray, *, around: int = 0) -> Any:
    """Return the plain data that `encode` wrote. Raises PlainError for any other bytes."""
    end = data.find(b"\n")
    end = len(data) if end < 0 else end
    arrays = _Arrays(data, end + 1)
    try:
        value = _from_json(json.loads(data[:end]), -around, arrays)
    except PlainError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError, EOFError) as error:
        raise PlainError(f"these bytes are not encoded plain data: {error}") from None
    if arrays.left > 0:
        raise PlainError(f"{arrays.left:,} bytes belong to no array of this plain data")
    return value


def _to_json(value: Any, depth: int, arrays: list[Any]) -> Any:
    """Return the value as JSON, and append the bytes of its arrays to `arrays`."""
    if depth > _MAX_DEPTH:
        raise PlainError(_TOO_DEEP)
    if type(value) not in _KINDS:
        value = _exact(value)
    kind = type(value)
    if kind is float:
        return _float_to_json(value)
    if kind is int:
        return _int_to_json(value)
    if kind in _ATOMS:
        return value
    if kind is list:
        return _items_to_json(value, depth + 1, arrays)
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode()}
    if kind is np.ndarray and value.dtype == object:  # Python's numbers, of any size
        return _to_json(value.tolist(), depth + 1, arrays)
    if kind is np.ndarray:
        return _array_to_json(value, arrays)
    if kind is not tuple and len(value) > _MAX_KEYS:
        raise PlainError(_TOO_MANY_KEYS)
    if kind is dict:
        return {"dict": [_items_to_json(pair, depth + 1, arrays) for pair in value.items()]}
    return {kind.__name__: _items_to_json(list(value), depth + 1, arrays)}


def _exact(value: Any) -> Any:
    """Return a value of a subclass, or a scalar of numpy, as the plain type that it is."""
    if isinstance(value, np.generic):
        value = value.item()
    for kind, convert in _CONVERSIONS.items():
        if isinstance(value, kind):
            return convert(value)
    raise PlainError(
        f"a value of type {type(value).__name__} is not plain data; "
        "return numbers, text, lists, tuples, sets, dicts or numpy arrays"
    )


# A subclass may have methods of its own, which aren't asked what it contains.
_CONVERSIONS: dict[type | tuple[type, ...], Callable[[Any], Any]] = {
    (bool, type(None)): lambda value: value,
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    (bytes, bytearray): bytes,
    np.ndarray: np.asarray,
    dict: lambda value: dict(dict.items(value)),
    list: lambda value: list(list.__iter__(value)),
    tuple: tuple,
    set: set,
    frozenset: frozenset,
}
_TOO_DEEP = f"plain data is nested at most {_MAX_DEPTH} deep; this is deeper"
_TOO_MANY_KEYS = (
    f"a set or a dict of plain data has at most {_MAX_KEYS:,} entries; return a list of them"
)


def _items_to_json(items: Sequence[Any], depth: int, arrays: list[Any]) -> Sequence[Any]:
    """Return each item as JSON."""
    if len(items) > _SHORT and depth < _MAX_DEPTH:
        if _are_json(items):
            return items
        kinds = set(map(type, items))
        # Recorded calls and their results are thousands of short rows: encode them in one go.
        if kinds <= _ROWS and _are_json(list(chain.from_iterable(items))):
            return [{"tuple": row} if type(row) is tuple else row for row in items]
    return [_to_json(item, depth, arrays) for item in items]


def _are_json(items: Sequence[Any]) -> bool:
    """Whether these are valid JSON already, as long lists of numbers usually are."""
    kinds = set(map(type, items))
    if not kinds <= _ATOMS:
        return False
    if float in kinds and not all(map(math.isfinite, _of(float, kinds, items))):
        return False
    integers = _of(int, kinds, items)
    return int not in kinds or (max(integers) < 2**63 and min(integers) > -(2**63))


def _of(kind: type, kinds: set[type], items: Sequence[Any]) -> Sequence[Any]:
    return items if len(kinds) == 1 else [item for item in items if type(item) is kind]


def _int_to_json(value: int) -> Any:
    # Python refuses to parse decimal integers of over 4300 digits; hexadecimal has no such limit.
    return value if abs(value) < 2**63 else {"int": hex(value)}


def _float_to_json(value: float) -> Any:
    return value if math.isfinite(value) else {"float": str(value)}


def _array_to_json(value: np.ndarray, arrays: list[Any]) -> Any:
    if _DTYPES.get(value.dtype.str) != value.dtype:
        raise PlainError(f"an array of dtype {value.dtype} is not plain data; use a numeric dtype")
    _check_sides(value.shape)
    value = np.asarray(value)
    order: Literal["C", "F"] = "F" if value.flags.fnc else "C"
    arrays.append(value.ravel(order).view(np.uint8).data)
    return {"array": [value.dtype.str, order, list(value.shape)]}


def _from_json(value: Any, depth: int, arrays: _Arrays) -> Any:
    if depth > _MAX_DEPTH:
        raise PlainError(_TOO_DEEP)
    if isinstance(value, list):
        return _items_from_json(value, depth, arrays)
    return _tagged_from_json(value, depth, arrays) if isinstance(value, dict) else value


def _items_from_json(items: list[Any], depth: int, arrays: _Arrays) -> list[Any]:
    kinds = set(map(type, items))
    if depth < _MAX_DEPTH and not {list, dict} & kinds:
        return items
    if depth + 2 < _MAX_DEPTH and kinds == {dict} and _are_rows(items):
        return [tuple(row["tuple"]) for row in items]
    return [_from_json(item, depth + 1, arrays) for item in items]


def _tagged_from_json(value: dict[str, Any], depth: int, arrays: _Arrays) -> Any:
    if len(value) != 1:
        raise PlainError(f"a tagged value has one tag, not {len(value)}")
    ((tag, body),) = value.items()
    if tag == "int":
        return int(body, 16)
    if tag == "float":
        return float(body)
    if tag == "bytes":
        return base64.b64decode(body, validate=True)
    if tag == "array":
        return arrays.next(*body)
    if tag != "tuple" and len(body) > _MAX_KEYS:
        raise PlainError(_TOO_MANY_KEYS)
    if tag == "dict":
        return {_from_json(k, depth + 1, arrays): _from_json(v, depth + 1, arrays) for k, v in body}
    if tag not in _COLLECTIONS:
        raise PlainError(f"{tag!r} is not a tag of plain data")
    return _COLLECTIONS[tag](_from_json(item, depth + 1, arrays) for item in body)


def _are_rows(value: list[dict[str, Any]]) -> bool:
    """Whether these are all tuples whose items carry no tags."""
    bodies = [row["tuple"] for row in value if row.keys() == {"tuple"}]
    if len(bodies) < len(value) or set(map(type, bodies)) != {list}:
        return False
    return not {list, dict} & set(map(type, chain.from_iterable(bodies)))


class _Arrays:
    """The arrays' bytes, consumed in order, so that no byte serves two arrays."""

    def __init__(self, data: bytes | bytearray, start: int) -> None:
        self._data = data
        self._at = start

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def next(self, kind: str, order: Literal["C", "F"], shape: list[int]) -> np.ndarray:
        dtype = _DTYPES[kind]
        if order not in ("C", "F") or len(shape) > _MAX_DIMENSIONS or set(map(type, shape)) - {int}:
            raise PlainError(
                f"an array of plain data needs order 'C' or 'F' and up to {_MAX_DIMENSIONS} whole "
                f"numbers as its shape, but got order {order!r} and shape {shape!r:.80}"
            )
        size = math.prod(shape) * dtype.itemsize
        # Check the claimed size against the bytes present, so that a huge shape allocates nothing.
        if min(shape, default=0) < 0 or size > self.left:
            raise PlainError("an array's shape does not match its bytes")
        _check_sides(shape)
        # Copied, because the student's function may write into its arguments.
        array: np.ndarray = np.ndarray(shape, dtype, self._data, self._at, order=order).copy(order)
        self._at += size
        return array


def _check_sides(shape: Sequence[int]) -> None:
    # A loop over the rows of an array of shape (10**18, 0) would never end.
    if 0 in shape and math.prod(side for side in shape if side) > _MAX_ROWS:
        raise PlainError(
            f"an array of shape {tuple(shape)} has no elements, but more than {_MAX_ROWS:,} rows"
        )
