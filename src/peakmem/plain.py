"""Plain data as bytes: what may pass between a student's process and the grader.

Plain data is None, bool, int, float (with -0.0, inf and NaN), str, bytes, list, tuple, set,
frozenset, dict, and numpy arrays of numbers. It is written as JSON in which every value that JSON
cannot tell apart carries a tag, so decoding builds data and never runs anything: no pickle.
"""

from __future__ import annotations

import base64
import io
import json
import math
from typing import Any

import numpy as np

__all__ = ["PlainError", "decode", "encode"]

_ARRAY_KINDS = "biufc"  # bool, integers, floats, complex: never objects, strings or records
_COLLECTIONS = (tuple, set, frozenset)
_MAX_DEPTH = 64
_MAX_KEYS = 1000  # of one set or dict: keys may be chosen so that their table takes hours to build


class PlainError(ValueError):
    """A value is not plain data, or bytes are not the encoding of any."""


def encode(value: Any) -> bytes:
    """Return plain data as bytes; numpy scalars are written as the Python number they hold.

    >>> decode(encode({"loss": float("inf"), 3: (1, 2)}))
    {'loss': inf, 3: (1, 2)}

    Raises PlainError, naming the type, for anything else.
    """
    return json.dumps(_to_json(value, 0), separators=(",", ":"), allow_nan=False).encode()


def decode(data: bytes) -> Any:
    """Return the plain data that `encode` wrote; PlainError where the bytes are anything else."""
    try:
        return _from_json(json.loads(data), 0)
    except PlainError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError, EOFError) as error:
        raise PlainError(f"these bytes are not encoded plain data: {error}") from None


def _to_json(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise PlainError(f"plain data is nested at most {_MAX_DEPTH} deep; this is deeper")
    kind_of = type(value)  # most values are of these very types, and there are many
    if kind_of is float:
        return _float_to_json(value)
    if kind_of is int:
        return _int_to_json(value)
    if kind_of is str or value is None or value is True or value is False:
        return value
    if isinstance(value, np.generic):
        value = value.item()
        if value is True or value is False:
            return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return _int_to_json(int.__int__(value))
    if isinstance(value, float):
        return _float_to_json(float.__float__(value))
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, np.ndarray):
        return _array_to_json(value)
    if isinstance(value, (dict, set, frozenset)) and len(value) > _MAX_KEYS:
        raise PlainError(_TOO_MANY_KEYS)
    if isinstance(value, dict):
        pairs = dict.items(value)
        return {"dict": [[_to_json(k, depth + 1), _to_json(v, depth + 1)] for k, v in pairs]}
    if isinstance(value, list):
        return [_to_json(item, depth + 1) for item in list.__iter__(value)]
    for kind in _COLLECTIONS:
        if isinstance(value, kind):
            return {kind.__name__: [_to_json(item, depth + 1) for item in iter(value)]}
    raise PlainError(
        f"a value of type {type(value).__name__} is not plain data; "
        "return numbers, text, lists, tuples, sets, dicts or numpy arrays"
    )


_TOO_MANY_KEYS = (
    f"a set or a dict of plain data has at most {_MAX_KEYS:,} entries; return a list of them"
)


def _int_to_json(value: int) -> Any:
    # Python refuses to read decimal integers of over 4300 digits; hexadecimal has no such limit.
    return value if abs(value) < 2**63 else {"int": hex(value)}


def _float_to_json(value: float) -> Any:
    return value if math.isfinite(value) else {"float": str(value)}


def _array_to_json(value: np.ndarray) -> Any:
    if value.dtype.kind not in _ARRAY_KINDS:
        raise PlainError(f"an array of dtype {value.dtype} is not plain data; use a numeric dtype")
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(value), allow_pickle=False)
    return {"npy": base64.b64encode(out.getvalue()).decode()}


def _from_json(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise PlainError(f"plain data is nested at most {_MAX_DEPTH} deep; this is deeper")
    if isinstance(value, list):
        if depth < _MAX_DEPTH and not {list, dict} & set(map(type, value)):
            return value
        return [_from_json(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise PlainError(f"a tagged value has one tag, not {len(value)}")
    ((tag, body),) = value.items()
    if tag == "int":
        return int(body, 16)
    if tag == "float":
        return float(body)
    if tag == "bytes":
        return base64.b64decode(body, validate=True)
    if tag == "npy":
        return _array_from(base64.b64decode(body, validate=True))
    if tag != "tuple" and len(body) > _MAX_KEYS:
        raise PlainError(_TOO_MANY_KEYS)
    if tag == "dict":
        return {_from_json(k, depth + 1): _from_json(v, depth + 1) for k, v in body}
    for kind in _COLLECTIONS:
        if tag == kind.__name__:
            return kind(_from_json(item, depth + 1) for item in body)
    raise PlainError(f"{tag!r} is not a tag of plain data")


def _array_from(data: bytes) -> np.ndarray:
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise PlainError(f"npy format {version} is not read here; version (1, 0) is")
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    # The header is believed only where the bytes are there: a huge shape allocates nothing.
    if dtype.kind not in _ARRAY_KINDS or math.prod(shape) * dtype.itemsize != (
        len(data) - stream.tell()
    ):
        raise PlainError(f"an array of dtype {dtype} and shape {shape} does not match its bytes")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)
