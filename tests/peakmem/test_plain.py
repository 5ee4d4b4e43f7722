import contextlib
import json
import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmem import plain

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
KEYS = st.booleans() | st.integers() | st.text() | st.binary()
PLAIN = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(KEYS, max_size=4)
        | st.frozensets(KEYS, max_size=4)
    ),
    max_leaves=20,
)


def identical(a, b):
    """Equal in type, sign of zero and NaN too, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(identical, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(identical(a[key], b[key]) for key in a)
    return a == b


@given(PLAIN)
def test_what_is_encoded_comes_back_the_same(value):
    assert identical(plain.decode(plain.encode(value)), value)


@pytest.mark.parametrize(
    "value",
    [-0.0, math.inf, -math.inf, math.nan, 5e-324, -(2**63), pytest.param(10**5000, id="long")],
)
def test_numbers_that_json_alone_would_spoil(value):
    assert identical(plain.decode(plain.encode(value)), value)


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "<i2", ">u4", "<u8", "<f2", "<f4", ">f8", "<c8", "<c16"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
def test_arrays_keep_dtype_shape_and_bits(dtype, shape):
    generator = np.random.default_rng(1)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    data = generator.bytes(size) if dtype != "?" else bytes(generator.integers(0, 2, size, "u1"))
    array = np.frombuffer(data, dtype).reshape(shape)
    back = plain.decode(plain.encode(array))
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_numpy_scalars_are_the_numbers_they_hold():
    assert identical(plain.decode(plain.encode(np.float64(0.5))), 0.5)
    assert identical(plain.decode(plain.encode([np.uint16(7), np.bool_(True)])), [7, True])


class AlwaysEqual(float):
    def __eq__(self, other):
        return True

    __hash__ = float.__hash__


def test_what_crosses_is_the_number_and_not_the_object():
    back = plain.decode(plain.encode(AlwaysEqual(3.0)))
    assert type(back) is float
    assert back != 4.0


@pytest.mark.parametrize(
    "value", [object(), print, np.array([object()]), np.array(["a"]), 1j, {1: {2: [open]}}]
)
def test_other_things_are_refused_by_name(value):
    with pytest.raises(plain.PlainError, match="not plain data"):
        plain.encode(value)


def test_nesting_is_bounded_on_both_sides():
    value = []
    for _ in range(100):
        value = [value]
    with pytest.raises(plain.PlainError, match="deep"):
        plain.encode(value)
    with pytest.raises(plain.PlainError):
        plain.decode(b"[" * 100_000 + b"]" * 100_000)


def forged_array(header: dict, body: bytes = b"") -> bytes:
    import base64

    text = repr(header).encode().ljust(117) + b"\n"
    npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body
    return json.dumps({"npy": base64.b64encode(npy).decode()}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense",
        b"\xff\xfe",
        b'{"unknown": 1}',
        b'{"int": 3}',
        b'{"int": "0x1", "float": "1"}',
        b'{"bytes": "%%%"}',
        b'{"dict": [[1]]}',
        b'{"dict": [[[1], 2]]}',
        b'{"set": [[1]]}',
        b'{"float": "abc"}',
        b'{"npy": "AAAA"}',
        b"1" * 5000,
        forged_array({"descr": "|O", "fortran_order": False, "shape": (1,)}, b"x" * 8),
        forged_array({"descr": "<f8", "fortran_order": False, "shape": (10**12,)}),
        forged_array({"descr": "<f8", "fortran_order": False, "shape": (-1,)}),
        forged_array({"descr": "<f8", "fortran_order": False, "shape": (2,)}, b"x" * 8),
    ],
)
def test_bytes_that_encode_nothing_are_refused(data):
    with pytest.raises(plain.PlainError):
        plain.decode(data)


def test_a_forged_array_of_the_right_form_would_be_read():
    # Shows that the refusals above are not for want of a well-made header.
    header = {"descr": "<f8", "fortran_order": False, "shape": (1,)}
    assert plain.decode(forged_array(header, struct.pack("<d", 2.5))).tolist() == [2.5]


@given(st.binary(max_size=200))
def test_random_bytes_never_do_anything_but_decode_or_be_refused(data):
    with contextlib.suppress(plain.PlainError):
        plain.decode(data)
