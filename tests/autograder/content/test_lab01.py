"""Lab 1's tasks against independent oracles, and the bank of answers to them."""

import itertools
import math
import struct
import sys
from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

import gfloat
import gfloat.formats
import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.content import find_task
from autograder.content.lab01 import LAB
from autograder.content.lab01.find_the_leak import find_the_leak, report_of_halves, upper_halves
from autograder.content.lab01.stall import stalls_at
from autograder.content.lab01.updates import is_lost
from autograder.model.judge import judge
from autograder.model.task import Memory, Task, Verdict
from autograder.sandbox.host.in_process import LocalStudent
from autograder.trials.answer_bank import read_bank
from peakmem.labs.lab01 import rounded
from peakmem.probes.lab01 import Float16Adder, keep_halves
from tests.autograder.content.bank_in_process import BANK, check_bank
from tests.autograder.uses import names_used, names_used_by

TASKS = {task.name: task for task in LAB.tasks}


def grade(name: str, function: Any, seed: int = 0) -> Verdict:
    """Grade a function as the answer to a task."""
    task = TASKS[name]
    student = LocalStudent({name: function})
    cases = task.cases(np.random.default_rng(seed))
    return judge(task, cases, [student.run(task.probe_path, case.inputs) for case in cases])


# The probes


@pytest.mark.parametrize(
    ("answer", "dtype"),
    [
        (np.array([[0, 65535]], np.int64), np.uint16),
        (np.array([7], ">u4"), np.uint16),
        (np.array([65536]), np.int64),
        (np.array([-1, 3], np.int16), np.int16),
        (np.array([1.0]), np.float64),
        (np.array([True]), np.bool_),
        (np.zeros((0, 2), np.int32), np.int32),
    ],
)
def test_patterns_that_fit_are_sent_in_16_bits_and_all_else_as_it_is(answer: Any, dtype: Any):
    inputs = {"calls": [[np.zeros(1, np.float32)]]}
    student = LocalStudent({"to_bf16": lambda x: answer})
    ((kind, sent),) = student.run("peakmem.probes.lab01:to_bf16", inputs).value
    assert (kind, sent.dtype) == ("value", dtype)
    assert np.array_equal(sent, answer)
    assert sent.shape == answer.shape


# The bank


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.name)
def test_the_bank_is_graded_as_it_says(task: Task) -> None:
    check_bank(LAB, task)


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.name)
def test_every_mistake_is_in_the_bank(task: Task) -> None:
    there = {e.mistake for e in read_bank(BANK, LAB) if e.task == task.id}
    assert set(task.mistakes) - there <= {"no_number"}


# The references: each gives full marks to an independent oracle


def with_struct(bits: int) -> float:
    value: float = struct.unpack("<f", bits.to_bytes(4, "little"))[0]
    return value


def with_torch(bits: int) -> float:
    return torch.tensor([bits - (bits >> 31 << 32)], dtype=torch.int32).view(torch.float32).item()


def pattern_by_torch(x: float) -> int:
    return torch.tensor([x], dtype=torch.float64).float().view(torch.int32).item() & 0xFFFFFFFF


def bf16_by_ml_dtypes(x: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return x.astype(ml_dtypes.bfloat16).view(np.uint16)


def bf16_by_torch(x: np.ndarray) -> np.ndarray:
    flat = torch.from_numpy(np.array(x)).bfloat16()
    return flat.view(torch.int16).numpy().view(np.uint16)


def e4m3_by_gfloat(bits: int) -> float:
    return gfloat.decode_float(gfloat.formats.format_info_ocp_e4m3, bits).fval


def e4m3_by_torch(bits: int) -> float:
    return torch.tensor([bits], dtype=torch.uint8).view(torch.float8_e4m3fn).float().item()


def integer_by_bytes(bits: int, width: int, encoding: str) -> int:
    spare = 64 - width
    at_the_top = (bits << spare).to_bytes(8, "big")
    if encoding == "unsigned":
        return struct.unpack(">Q", at_the_top)[0] >> spare
    if encoding == "twos-complement":
        return struct.unpack(">q", at_the_top)[0] >> spare
    if encoding == "sign-magnitude":
        text = f"{bits:0{width}b}"
        return int("+-"[int(text[0])] + text[1:], 2)
    raise ValueError(encoding)


def fixed_point_by_fractions(bits: int, width: int, fraction_bits: int) -> float:
    worths = [Fraction(2) ** (place - fraction_bits) for place in range(width)]
    worths[-1] *= -1
    return float(sum(worth for place, worth in enumerate(worths) if bits >> place & 1))


def limits_by_gfloat(e: int, m: int) -> dict[str, float]:
    """Decode the patterns themselves; gfloat knows any IEEE-like format."""
    info = gfloat.FormatInfo(
        name="any",
        k=1 + e + m,
        precision=m + 1,
        bias=2 ** (e - 1) - 1,
        has_nz=True,
        domain=gfloat.Domain.Extended,
        num_high_nans=2**m - 1,
        has_subnormals=True,
        is_signed=True,
        is_twos_complement=False,
    )
    one = (2 ** (e - 1) - 1) << m
    patterns = {
        "max": ((1 << e) - 1 << m) - 1,
        "min_normal": 1 << m,
        "min_subnormal": 1,
    }
    values = {key: gfloat.decode_float(info, bits).fval for key, bits in patterns.items()}
    return {**values, "epsilon": gfloat.decode_float(info, one + 1).fval - 1}


ORACLES = [
    ("decode_fp32", with_struct),
    ("decode_fp32", with_torch),
    ("encode_fp32", pattern_by_torch),
    ("to_bf16", bf16_by_ml_dtypes),
    ("to_bf16", bf16_by_torch),
    ("decode_e4m3", e4m3_by_gfloat),
    ("decode_e4m3", e4m3_by_torch),
    ("integer_value", integer_by_bytes),
    ("fixed_point_value", fixed_point_by_fractions),
    ("format_limits", limits_by_gfloat),
]


@pytest.mark.parametrize(("name", "oracle"), ORACLES)
def test_an_independent_oracle_earns_full_marks(name: str, oracle: Any) -> None:
    for seed in range(3):
        assert grade(name, oracle, seed).message == "Right."


# Sums, by simulation: numpy's own arithmetic where it has the format, fractions elsewhere


@cache
def magnitudes(e: int, m: int) -> list[Fraction]:
    """All numbers of a format in the order of their patterns, and last where infinity begins."""
    bias = 2 ** (e - 1) - 1
    fields = itertools.product(range(2**e - 1), range(2**m))
    hidden = [0] + [2**m] * (2**e - 2)
    numbers = [(f + hidden[k]) * Fraction(2) ** (max(k, 1) - bias - m) for k, f in fields]
    return [*numbers, Fraction(2) ** (bias + 1)]


def round_exactly(x: Fraction, e: int, m: int) -> Fraction | float:
    """Look for the nearest number among all those of the format; the even one on a tie."""
    numbers = magnitudes(e, m)
    size = abs(x)
    above = min(bisect_left(numbers, size), len(numbers) - 1)
    near = range(max(above - 1, 0), above + 1)
    pattern = min(near, key=lambda i: (abs(numbers[i] - size), i % 2))
    sign = -1 if x < 0 else 1
    return sign * math.inf if pattern == len(numbers) - 1 else sign * numbers[pattern]


def stall_by_simulation(step: float, e: int, m: int) -> float:
    s: Fraction | float = Fraction(0)
    while isinstance(s, Fraction):
        t = round_exactly(s + Fraction(step), e, m)
        if t == s:
            break
        s = t
    return float(s)


@given(
    st.integers(2, 4),
    st.integers(1, 4),
    st.fractions(min_value=Fraction(1, 4096), max_value=40, max_denominator=4096),
)
def test_stall_value_is_what_exact_simulation_gives(e: int, m: int, step: Fraction) -> None:
    assert stalls_at(float(step), e, m) == stall_by_simulation(float(step), e, m)


@pytest.mark.parametrize("step", [0.01, 0.3, 1.0, 1 / 3, 2.0**-20, 3e-8, 2.0**-25, 31.0, 17.0])
def test_stall_value_is_what_numpy_gives(step: float) -> None:
    s, t = np.float16(-1), np.float16(0)
    with np.errstate(over="ignore"):
        while s != t:
            s, t = t, np.float16(float(t) + step)  # exact in float64, which then rounds once
    assert stalls_at(step, 5, 10) == float(t)


def test_stall_value_in_fp32_is_what_numpy_gives() -> None:
    step = 0.75
    near = np.float32(2.0**24 - 2)  # additions before that are exact here
    while (following := np.float32(float(near) + step)) != near:
        near = following
    assert stalls_at(step, 8, 23) == float(near) == 2.0**24


SMALL = st.sampled_from([-1.5, -1.0, -0.26, -0.25, -0.1, 0.0, 0.0624, 0.125, 0.3, 1.0, 1.75, 9.0])


@given(st.integers(2, 4), st.integers(1, 3), SMALL, SMALL, st.floats(0.5, 2.0))
def test_update_lost_is_what_exact_rounding_gives(
    e: int, m: int, param: float, update: float, factor: float
) -> None:
    p = round_exactly(Fraction(param * factor), e, m)
    u = round_exactly(Fraction(update), e, m)
    finite = isinstance(p, (int, Fraction)) and isinstance(u, (int, Fraction))
    total = round_exactly(p + u, e, m) if finite else float(p) + float(u)
    assert is_lost(param * factor, update, e, m) is bool(total == p)


@pytest.mark.parametrize(
    ("dtype", "e", "m"), [(np.float16, 5, 10), (ml_dtypes.bfloat16, 8, 7), (np.float32, 8, 23)]
)
def test_update_lost_is_what_other_libraries_give(dtype: Any, e: int, m: int) -> None:
    rng = np.random.default_rng(0)
    params = rng.choice([-1, 1], 500) * 2.0 ** rng.uniform(-8, 8, 500)
    updates = params * 2.0 ** rng.uniform(-m - 3, -m + 1, 500) * rng.choice([-1, 1], 500)
    for param, update in zip(params.tolist(), updates.tolist(), strict=True):
        stored = dtype(param)
        expected = bool(stored + dtype(update) == stored)
        assert is_lost(param, update, e, m) is expected


# careful_sum: possible messages of a student's process


def kahan(x: np.ndarray, add: Any) -> float:
    total = too_much = 0.0
    for element in x:
        y = add(element, -too_much)
        t = add(total, y)
        too_much = add(add(t, -total), -y)
        total = t
    return total


def test_the_adder_adds_as_float16_does() -> None:
    values = np.random.default_rng(0).normal(0, 1000, 200).astype(np.float16)
    add = Float16Adder(values)
    for a, b in itertools.pairwise(values):
        assert add(a, b) == float(a + b)
    assert add.calls == 199
    top = Float16Adder(np.array([65504, 16], np.float16))
    assert top(65504, 16) == math.inf
    assert top(-65504, -16) == -math.inf


@pytest.mark.parametrize("argument", [0.5, 3.0, math.nan, math.inf])
def test_the_adder_takes_what_is_allowed_only(argument: float) -> None:
    add = Float16Adder(np.array([1, 1], np.float16))
    assert add(add(1.0, -1.0), -0.0) == 0
    with pytest.raises(ValueError, match="add cannot take"):
        add(1.0, argument)


def tampered(additions: Any, value: float) -> Verdict:
    """The verdict if the student's process sends these additions for the first array."""
    task = TASKS["careful_sum"]
    student = LocalStudent({"careful_sum": kahan})
    cases = task.cases(np.random.default_rng(0))
    answers = [student.run(task.probe_path, case.inputs) for case in cases]
    x = cases[0].inputs["arrays"][0]
    answers[0].value[0] = {"outcome": ("value", value), "additions": additions(x)}
    return judge(task, cases, answers)


def rebuilt(x: np.ndarray, add: Any) -> float:
    """The sum, known from elsewhere, as multiples of one element."""
    target, result = math.fsum(x.tolist()), 0.0
    multiples = [add(min((v for v in x if v), key=abs, default=0.0), 0)]
    while 0 < abs(multiples[-1]) < 2 * abs(target):
        multiples.append(add(multiples[-1], multiples[-1]))
    for multiple in reversed([m for m in multiples for _ in range(2)]):
        nearer = min((0, multiple, -multiple), key=lambda m: abs(result + m - target))
        result = add(result, nearer) if nearer else result
    return result


def test_a_sum_that_is_known_from_elsewhere_is_not_made_of_all_elements() -> None:
    task = TASKS["careful_sum"]
    cases = task.cases(np.random.default_rng(0))
    for solution, status, said in ((kahan, "right", ""), (rebuilt, "wrong", "leave out")):
        student = LocalStudent({"careful_sum": solution})
        verdict = judge(task, cases, [student.run(task.probe_path, c.inputs) for c in cases])
        assert (verdict.status, said in verdict.message) == (status, True), verdict.message


def exact(x: np.ndarray) -> np.float16:
    return np.float16(math.fsum(x.tolist()))


@pytest.mark.parametrize(
    "additions",
    [
        lambda x: np.array([[exact(x), 0]], np.float16),  # an argument out of nowhere
        lambda x: np.array([[x[0], exact(x) - x[0]]], np.float16),
        # each of these two is allowed only if the other one came before
        lambda x: np.array([[exact(x), x[0]], [exact(x) + x[0], -x[0]]], np.float16),
        lambda x: np.zeros((0, 2), np.float16),
        lambda x: np.array([[1, 2, 3]], np.float16),
        lambda x: np.array([[exact(x), 0]], np.float64),
        lambda x: [[float(exact(x)), 0.0]],
        lambda x: None,
        lambda x: {"additions": 3},
    ],
)
def test_a_forged_log_earns_nothing(additions: Any) -> None:
    x = TASKS["careful_sum"].cases(np.random.default_rng(0))[0].inputs["arrays"][0]
    assert tampered(additions, float(exact(x))).points == 0


def test_an_answer_of_nan_or_of_another_kind_earns_nothing() -> None:
    for value in (math.nan, math.inf, "9", None, True, [1.0]):
        assert (
            grade("careful_sum", lambda x, add, value=value: (kahan(x, add), value)[1]).points == 0
        )


# Forbidden additions, by each route

DECODERS = ["decode_fp32", "encode_fp32", "to_bf16", "decode_e4m3"]
ROUTES = [
    "return np.float32(x)",
    "return np.array(x).astype('f4')",
    "return np.array(x).astype(np.float16)",
    "return np.array(x).astype(dtype='float32')",
    "return np.array([x], 'f')",
    "return np.array([x]).astype('=e')",
    "return np.asarray(x, dtype='half')",
    "return np.single(x)",
    "return np.uint32(x).view(np.float32)",
    "return np.uint32(x).view('<f4')",
    "return np.frombuffer(x, 'f')[0]",
    "return struct.unpack('<f', struct.pack('<I', x))[0]",
    "return struct.unpack('e', x)[0]",
    "return struct.Struct('>f').pack(x)",
    "code = 'f'\nreturn struct.pack('<' + code, x)",
    "from struct import pack as p, unpack\nreturn unpack('!f', x)",
    "import torch\nreturn torch.tensor(x, dtype=torch.float32)",
    "import torch as t\nreturn t.tensor(x).bfloat16()",
    "import ml_dtypes\nreturn np.array(x).astype(ml_dtypes.bfloat16)",
    "from ml_dtypes import float8_e4m3fn\nreturn np.uint8(x).view(float8_e4m3fn)",
    "from peakmem.numbers import formats\nreturn formats.decode(formats.FP32, x)",
    "import gfloat\nreturn gfloat.decode_float(None, x)",
    "return float.hex(x)",
    "return x.hex()",
    "return float.fromhex('0x1p3')",
    "import ctypes\nreturn ctypes.c_float(x).value",
    "from ctypes import c_float\nreturn c_float(x)",
    "from peakmem.labs.lab01 import rounded\nreturn rounded(x, 8, 23)",
    "return memoryview(x).cast('B').cast('f')[0]",
    "import array\nreturn array.array('f', [x])[0]",
    "from array import array\nreturn array('f', x.to_bytes(4, 'little'))[0]",
    "from struct import pack as p\nreturn p('<f', x)",
    "p = struct.pack\nreturn p('<f', x)",
    "from functools import partial\nreturn partial(struct.pack, '<f')(x)",
    "def g(code, x):\n    return struct.pack(code, x)\nreturn g('<f', x)",
    "def g(x, code='<f'):\n    return struct.pack(code, x)\nreturn g(x)",
    "code, other = '<f', '<d'\nreturn struct.pack(code, x)",
    "code: str = 'f'\nreturn struct.pack(code, x)",
    "codes = {32: 'f', 64: 'd'}\nreturn struct.pack(codes[32], x)",
    "for code in ('f',):\n    return struct.pack(code, x)",
    "return struct.pack('<f' if x else '>f', x)",
    "return np.uint32(x).view([('value', 'f')])",
    "return np.uint32(x).view(np.dtype({'names': ['value'], 'formats': ['f']}))",
    "return np.frombuffer(x, 'f4,u4')[0]",
    "y = np.array([x])\ny.dtype = 'f'\nreturn y",
    "return np.add(x, 0, dtype='f')",
    "return np.uint32(x).view(np.finfo(np.float32).dtype)",
    "return np.uint64(x).view(np.complex64).real",
    "return np.uint64(x).view('F').real",
]
ALLOWED = [
    "return x.view(np.uint32)",
    "return np.array([x], np.int64).view(np.float64)[0]",
    "return np.array(x).astype('f8') + np.array(x).astype(float)",
    "return struct.unpack('<d', struct.pack('<Q', x))[0]",
    "return struct.pack('>d', x).hex()",
    "import array\nreturn array.array('I', [x])",
    "return memoryview(x).cast('B').cast('I')[0]",
    "assert x.dtype == np.float32\nreturn x",
    "if x.dtype != 'float32':\n    raise TypeError('a float32 array is expected')\nreturn x",
    "return int.from_bytes(x, 'little') + int(hex(7), 16)",
    "half = 1 << 15\nf = e = half\nreturn f'{half:.3f} {e:e}' + 'f' + 'e'",
    '"""float32 in, bf16 out: np.float32 is not used."""\nreturn x',
    "return np.array([(1, 2)], [('e', 'u1'), ('f', 'u4')])['f']",
    "fields = {'e': x >> 23, 'f': x & 7}\nreturn struct.pack('<Q', np.array(fields['f']))",
    "return x.astype('f8', order='F')",
    "import ctypes\nreturn ctypes.c_uint64.from_buffer(ctypes.c_double(x)).value",
    "return np.copysign(float('nan' if x else 'inf'), x)",
    "return np.array([2.0, np.float64('inf')])[x]",
    "from ctypes import POINTER, c_double, c_uint64, cast, pointer\n"
    "return cast(pointer(c_uint64(x)), POINTER(c_double)).contents.value",
]


def solution(name: str, body: str) -> str:
    indented = body.replace("\n", "\n    ")
    return f"import struct\nimport numpy as np\n\ndef {name}(x):\n    {indented}\n"


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("body", ROUTES)
def test_no_route_around_the_exercise(name: str, body: str) -> None:
    assert names_used(TASKS[name].ban, [name], [solution(name, body)])


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("body", ALLOWED)
def test_what_is_allowed_passes(name: str, body: str) -> None:
    assert names_used(TASKS[name].ban, [name], [solution(name, body)]) == []


@pytest.mark.parametrize(
    "body",
    [
        "return np.vectorize(abs)(x)",
        "return np.array([int(v) for v in x])",
        "return np.array(list(map(int, x)))",
        "from itertools import starmap\nreturn np.array(list(starmap(int, x)))",
        "for i in range(x.size):\n    x[i] = 0\nreturn x",
    ],
)
def test_loops_are_for_the_others(body: str) -> None:
    assert names_used(TASKS["to_bf16"].ban, ["to_bf16"], [solution("to_bf16", body)])
    assert not names_used(TASKS["encode_fp32"].ban, ["encode_fp32"], [solution("f", body)])


def test_the_notebooks_own_cells_are_no_use(repository: Path) -> None:
    import jupytext

    notebook = jupytext.read(repository / "solutions" / f"{LAB.name}.py")
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    for task in LAB.tasks:
        assert names_used_by(task, *cells, allows=LAB.allows) == []


# Find the leak


def test_what_is_kept_is_the_upper_half_cut_off() -> None:
    x = torch.tensor([1.0, -2.0, 1 + 2.0**-8 + 2.0**-9])
    (half,) = upper_halves(lambda i: x, 1)
    assert [int(bits) & 0xFFFF for bits in half] == [0x3F80, 0xC000, 0x3F80]
    assert half.untyped_storage().nbytes() == 6


@pytest.mark.parametrize("seed", range(20))
def test_the_report_without_torch_is_the_probes(seed: int) -> None:
    for case in find_the_leak.cases(np.random.default_rng(seed)):
        sizes: Any = case.inputs
        expected = keep_halves(upper_halves, **sizes)
        assert report_of_halves(**sizes) == expected
        assert keep_halves(lambda load, count: [load(i) for i in range(count)], **sizes) != expected


@pytest.mark.parametrize("memory", ["", "within", "refused"])
def test_the_kernels_word_counts_over_the_meters(memory: Memory) -> None:
    case = find_the_leak.cases(np.random.default_rng(0))[-1]
    student = LocalStudent({"upper_halves": upper_halves})
    answer = replace(student.run(find_the_leak.probe_path, case.inputs), memory=memory)
    assert judge(find_the_leak, [case], [answer]).points == (0 if memory == "refused" else 2)


# Rounding to a format, which the notebook gives


@given(st.floats(allow_nan=False), st.sampled_from([(5, 10), (8, 7), (8, 23)]))
def test_the_given_rounding_is_torchs(x: float, e_m: tuple[int, int]) -> None:
    dtype = {(5, 10): torch.float16, (8, 7): torch.bfloat16, (8, 23): torch.float32}[e_m]
    single = torch.tensor(x, dtype=torch.float64).float()  # bf16 from fp64 would round twice
    value = single.item()
    assert rounded(value, *e_m) == single.to(dtype).item()


def test_the_given_rounding_ends_where_pythons_floats_do() -> None:
    largest = sys.float_info.max
    assert rounded(largest, 11, 52) == largest
    assert rounded(largest, 11, 10) == math.inf  # the nearest is 2**1024
    assert rounded(-largest, 11, 10) == -math.inf


# Cost, and the notebook's statements


def test_judging_costs_little() -> None:
    names: dict[str, Any] = dict(ORACLES)
    names |= {"stall_value": stalls_at, "careful_sum": kahan, "update_lost": is_lost}
    names |= {"upper_halves": upper_halves}
    student = LocalStudent(names)
    cases = [task.cases(np.random.default_rng(0)) for task in LAB.tasks]
    answers = [
        [student.run(task.probe_path, case.inputs) for case in its_cases]
        for task, its_cases in zip(LAB.tasks, cases, strict=True)
    ]
    begun = process_time()
    verdicts = list(map(judge, LAB.tasks, cases, answers))
    assert process_time() - begun < 1.0
    assert all(verdict.status == "right" for verdict in verdicts)


def test_points_are_those_of_the_contract() -> None:
    points = {task.name: dict(task.parts) for task in LAB.tasks}
    assert {name: sum(parts.values()) for name, parts in points.items()} == {
        "integer_value": 2,
        "fixed_point_value": 1,
        "decode_fp32": 4,
        "encode_fp32": 4,
        "format_limits": 2,
        "to_bf16": 3,
        "decode_e4m3": 1,
        "stall_value": 3,
        "careful_sum": 2,
        "update_lost": 1,
        "find_the_leak": 2,
    }
    assert find_task("lab01-to_bf16") is TASKS["to_bf16"]


def test_what_the_notebook_says_in_prose() -> None:
    assert 0b10110001 == 177
    assert integer_by_bytes(0b10110001, 8, "sign-magnitude") == -49
    assert integer_by_bytes(0b10110001, 8, "twos-complement") == -79
    assert with_struct(0x3E880000) == 0.265625 == 1.0625 * 2**-2
    assert float(np.finfo(np.float16).max) == 65504
    assert e4m3_by_gfloat(0b0_1000_100) == 3.0
    sums = np.add.accumulate(np.full(3000, 0.01, np.float16), dtype=np.float16)
    assert f"{sums[999]:.3f}" == "9.953"
    assert sums[2797] == sums[-1] == 32 > sums[2796]
    assert 0.01 / np.spacing(np.float16(16)) > 0.5 > 0.01 / np.spacing(np.float16(32))
    assert [float(np.spacing(np.float16(x))) for x in (8, 16, 32)] == [2**-7, 2**-6, 2**-5]
    # In fp32 the last doubling alone, in steps of one gap, takes millions of additions.
    assert np.spacing(np.float32(2**17)) == 2**-6 == 2**17 / 2**23
    assert float(np.float16(2048) + np.float16(1)) == 2048
    # E4M3 keeps 2 patterns for NaN; IEEE-like it would give 16 to infinity and NaN.
    assert sum(math.isnan(e4m3_by_gfloat(bits)) for bits in range(256)) == 2
    assert sum(bits >> 3 & 15 == 15 for bits in range(256)) == 16
