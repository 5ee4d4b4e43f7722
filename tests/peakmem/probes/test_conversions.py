"""Watched cells: they run as written, and small floats made of bits are seen whatever made them."""

import array
import math
import struct
import traceback

import numpy as np
import pytest

from peakmem.probes.conversions import NotAllowed, compiled, refused

KIND = np.exp(np.int16(0)).dtype  # float32, and no text says so

CONVERTS = {
    "view": "np.uint32(1).view(KIND)",
    "frombuffer": "np.frombuffer(bytes(4), KIND)",
    "by keyword": "np.frombuffer(bytes(4), dtype=KIND)",
    "a buffer's array": "np.ndarray((1,), KIND, bytes(4))",
    "getfield": "np.uint32(1).getfield(KIND)",
    "a type": "KIND.type(0.1)",
    "astype": "np.array([0.1]).astype(KIND)",
    "a record": "np.zeros(1, np.dtype([('a', KIND)]))",
    "map": "list(map(np.uint32(1).view, [KIND]))",
    "bytes of": "np.sqrt(np.int16(2)).tobytes()",
    "a window on": "memoryview(np.sqrt(np.zeros(1, np.int16)))",
    "fill": "np.sqrt(np.zeros(1, np.int16)).fill(0.1)",
    "out": "np.add(0.1, 0, out=np.sqrt(np.zeros(1, np.int16)), casting='unsafe')",
    "a product": "np.sqrt(np.int16(1)) * x",
    "struct": "struct.unpack('<' + CODE, bytes(4))",
    "struct by bytes": "struct.pack(CODE.encode(), 0.1)",
    "a cast": "memoryview(bytes(4)).cast(CODE)",
    "an array": "array.array(CODE, [0.1])",
    "hex": "getattr(x, 'h' + 'ex')()",
}
RUNS = {
    "double": "struct.unpack('d', bytes(8))",
    "limits": "0.1 < np.finfo(np.float32).max and float(np.finfo(np.float32).eps / 2)",
    "a question": "isinstance(x, np.float32) or np.issubdtype(KIND, np.floating)",
    "a root of a small integer": "float(np.sqrt(np.int16(4)))",
    "a sort's key": "sorted([3, -1], key=abs)",
    "a reduction": "__import__('functools').reduce(max, [1, 3, 2])",
    "double's bytes": "np.float64(0.1).tobytes()",
    "the largest as a double": "struct.pack('<d', np.finfo(np.float32).max)",
    "integers": "np.zeros(3, np.uint32).view(np.uint8).tobytes()",
}


def _run(source: str) -> object:
    names = {"np": np, "struct": struct, "array": array, "KIND": KIND, "CODE": "f", "x": math.pi}
    exec(compiled(f"def function():\n    return {source}"), names)
    with refused():
        return names["function"]()


@pytest.mark.parametrize("source", CONVERTS.values(), ids=CONVERTS)
def test_a_conversion_is_refused(source):
    with pytest.raises(NotAllowed):
        _run(source)


@pytest.mark.parametrize("source", RUNS.values(), ids=RUNS)
def test_other_code_runs_and_gives_the_same(source):
    names = {"np": np, "struct": struct, "KIND": KIND, "x": math.pi}
    assert _run(source) == eval(source, names)


def test_a_refusal_that_was_caught_counts():
    names = {"np": np, "KIND": KIND}
    exec(
        compiled(
            "def function():\n    try: np.uint32(1).view(KIND)\n    except Exception: return 0\n"
        ),
        names,
    )
    with pytest.raises(NotAllowed), refused():
        names["function"]()


def test_nothing_is_refused_outside():
    names = {"np": np, "KIND": KIND}
    exec(
        compiled("value = np.uint32(0).view(KIND)\narray = np.zeros(1, KIND)\narray[0] = 2"), names
    )
    assert names["value"] == 0
    assert names["array"] == 2


def test_a_recursion_may_be_as_deep_as_unwatched():
    names = {}
    exec(compiled("def depth(n): return n and 1 + depth(n - 1)"), names)
    assert names["depth"](900) == 900


def test_lines_and_classes_are_as_written():
    source = (
        "class A:\n"
        "    def f(self): return 1\n"
        "class B(A):\n"
        "    def f(self):\n"
        "        return super().f() + len(locals())\n"
        "B().f()\n"
        "1 / (int(0))\n"
    )
    with pytest.raises(ZeroDivisionError) as error:
        exec(compiled(source, "<cell>"), {})
    assert traceback.extract_tb(error.tb)[-1].lineno == 7
