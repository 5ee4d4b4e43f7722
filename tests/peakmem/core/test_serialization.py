import contextlib
import json
import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmem.core import serialization

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
    assert identical(serialization.decode(serialization.encode(value)), value)


ROWS = st.lists(st.lists(SCALARS, max_size=3) | st.lists(SCALARS, max_size=3).map(tuple))


@given(ROWS | st.lists(SCALARS), st.integers(0, 62))
def test_many_short_rows_come_back_the_same_at_any_depth(rows, depth):
    value = [*rows, *rows, *rows]  # many are looked at together, few one by one
    for _ in range(depth):
        value = [value]
    assert identical(serialization.decode(serialization.encode(value)), value)


@pytest.mark.parametrize("row", [(1,), [1]], ids=["tuples", "lists"])
@pytest.mark.parametrize("count", [1, 30])
def test_rows_that_lie_too_deep_are_refused_however_many(row, count):
    value = [row] * count
    for _ in range(63):
        value = [value]
    with pytest.raises(serialization.PlainError, match="deep"):
        serialization.encode(value)


@pytest.mark.parametrize(
    "value",
    [-0.0, math.inf, -math.inf, math.nan, 5e-324, -(2**63), pytest.param(10**5000, id="long")],
)
def test_numbers_that_json_alone_would_spoil(value):
    assert identical(serialization.decode(serialization.encode(value)), value)


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "<i2", ">u4", "<u8", "<f2", "<f4", ">f8", "<c8", "<c16"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
def test_arrays_keep_dtype_shape_and_bits(dtype, shape):
    generator = np.random.default_rng(1)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    data = generator.bytes(size) if dtype != "?" else bytes(generator.integers(0, 2, size, "u1"))
    array = np.frombuffer(data, dtype).reshape(shape)
    back = serialization.decode(serialization.encode(array))
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_numpy_scalars_are_the_numbers_they_hold():
    assert identical(serialization.decode(serialization.encode(np.float64(0.5))), 0.5)
    assert identical(
        serialization.decode(serialization.encode([np.uint16(7), np.bool_(True)])), [7, True]
    )


class AlwaysEqual(float):
    def __eq__(self, other):
        return True

    __hash__ = float.__hash__


def test_what_crosses_is_the_number_and_not_the_object():
    back = serialization.decode(serialization.encode(AlwaysEqual(3.0)))
    assert type(back) is float
    assert back != 4.0


@pytest.mark.parametrize(
    "value", [object(), print, np.array([object()]), np.array(["a"]), 1j, {1: {2: [open]}}]
)
def test_other_things_are_refused_by_name(value):
    with pytest.raises(serialization.PlainError, match="not plain data"):
        serialization.encode(value)


def test_an_array_of_python_numbers_crosses_as_a_list_of_them():
    whole = np.array([[2**70, 1], [-1, 0]], dtype=object)
    assert serialization.decode(serialization.encode({"at": whole})) == {"at": whole.tolist()}
    assert serialization.decode(serialization.encode(np.array(2**70, dtype=object))) == 2**70


def test_nesting_is_bounded_on_both_sides():
    value = []
    for _ in range(100):
        value = [value]
    with pytest.raises(serialization.PlainError, match="deep"):
        serialization.encode(value)
    with pytest.raises(serialization.PlainError):
        serialization.decode(b"[" * 100_000 + b"]" * 100_000)


def forged_array(dtype: str, order: str, shape: list, body: bytes = b"") -> bytes:
    return json.dumps({"array": [dtype, order, shape]}).encode() + b"\n" + body


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
        b"1" * 5000,
        b"1\nmore",
        b'{"array": ["<f8", "C", [0]]}',
        b'{"array": ["<f8", "C"]}\n',
        b'{"array": [["<f8"], "C", [0]]}\n',
        b'{"array": 3}\n',
        forged_array("|O", "C", [1], b"x" * 8),
        forged_array("<U2", "C", [1], b"x" * 8),
        forged_array("<f8,<f8", "C", [1], b"x" * 16),
        forged_array("<f8", "K", [1], b"x" * 8),
        forged_array("<f8", "C", [10**12]),
        forged_array("<f8", "C", [-1]),
        forged_array("<f8", "C", [-1, -1], b"x" * 8),
        forged_array("<f8", "C", [2**63, 2**63, 0]),
        forged_array("<f8", "C", [1.0], b"x" * 8),
        forged_array("<f8", "C", [True], b"x" * 8),
        forged_array("<f8", "C", [1] * 65, b"x" * 8),
        forged_array("<f8", "C", [2], b"x" * 8),
        forged_array("<f8", "C", [1], b"x" * 9),
    ],
)
def test_bytes_that_encode_nothing_are_refused(data):
    with pytest.raises(serialization.PlainError):
        serialization.decode(data)


def test_a_forged_array_of_the_right_form_would_be_read():
    # Shows that the header is well made, so the refusals above have other reasons.
    assert serialization.decode(forged_array("<f8", "C", [1], struct.pack("<d", 2.5))).tolist() == [
        2.5
    ]


def test_no_byte_belongs_to_two_arrays():
    one = ["|u1", "C", [4]]
    data = json.dumps([{"array": one}, {"array": one}]).encode() + b"\n"
    with pytest.raises(serialization.PlainError, match="does not match its bytes"):
        serialization.decode(data + b"1234")
    first, second = serialization.decode(data + b"12345678")
    assert (first.tobytes(), second.tobytes()) == (b"1234", b"5678")


def test_arrays_that_came_may_be_written_into_and_are_apart_from_the_message():
    data = serialization.encode([np.arange(3), np.arange(3, dtype="i1"), np.arange(3.0)])
    kept = bytes(data)
    arrays = serialization.decode(data)
    for array in arrays:
        array += 1
    assert data == kept
    assert [array.tolist() for array in arrays] == [[1, 2, 3]] * 3


def test_an_arrays_order_and_its_bytes_with_line_ends_are_kept():
    array = np.frombuffer(b"\n" * 24, "<f4").reshape(2, 3)
    for sent in (array, array.T, array[:, ::2], array[::-1], np.array(7)):
        back = serialization.decode(serialization.encode({"a": [sent, "text"], "b": sent}))["a"][0]
        assert back.tobytes() == sent.tobytes()
        assert back.shape == sent.shape
        assert back.flags.c_contiguous == (sent.flags.c_contiguous or not sent.flags.f_contiguous)


@pytest.mark.parametrize("length", [0, 1, 20])
@pytest.mark.parametrize(
    "item", [1, -1, 2**63, -(2**63), 0.5, math.nan, "a", True, None, np.float32(2), (1,), b"x"]
)
def test_lists_of_one_kind_and_of_several_come_back_the_same(item, length):
    plain_item = item.item() if isinstance(item, np.generic) else item
    for others in ([], [7], [0.5], [False], ["text"]):
        back = serialization.decode(serialization.encode([*[item] * length, *others]))
        assert identical(back, [*[plain_item] * length, *others])


@given(st.binary(max_size=200))
def test_random_bytes_never_do_anything_but_decode_or_be_refused(data):
    with contextlib.suppress(serialization.PlainError):
        serialization.decode(data)


def test_rows_of_nothing_without_end_are_refused_on_both_sides():
    for shape in ((0,), (0, 3), (1000, 0), (2**20, 0)):
        assert serialization.decode(serialization.encode(np.zeros(shape))).shape == shape
    with pytest.raises(serialization.PlainError, match="but more than 1,048,576 rows"):
        serialization.encode(np.zeros((2**40, 0)))
    with pytest.raises(serialization.PlainError, match="but more than 1,048,576 rows"):
        serialization.decode(b'{"array": ["<f8", "C", [1099511627776, 0]]}\n')
