"""Lab 9: the bank's answers, and the references against independent oracles."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from autograder.content.lab09 import LAB, adam8bit_step, find_the_leak, lora, nf4, pack_int4
from autograder.content.lab09.adam8bit import adam
from autograder.content.lab09.affine import affine
from autograder.content.lab09.int8_linear import product
from autograder.content.lab09.lora import Lora
from autograder.content.lab09.nf4 import NF4, encoded
from autograder.content.lab09.stored_bytes import weight_bytes
from autograder.content.lab09.straight_through import quantized_with_gradient, ternary
from autograder.content.lab09.symmetric import quantized
from autograder.model.judge import judge
from autograder.model.task import Answer, Task, Verdict
from autograder.notebooks.questions import COURSE
from autograder.notebooks.released import release_of
from autograder.sandbox.host.in_process import LocalStudent
from benchmarks.solutions import solved
from peakmem.labs.lab09 import outlier_inputs, weight_matrix
from peakmem.measure.meter import MemoryMeter
from peakmem.probes import Namespace, lab09
from peakmem.probes.lab09.adam8bit import large_steps, trained
from tests.answers import mistakes_shown
from tests.autograder.content.bank_in_process import check_bank


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_bank(task: Task) -> None:
    check_bank(LAB, task)


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_every_mistake_stands_in_the_bank(task: Task) -> None:
    assert set(task.mistakes) <= mistakes_shown(task)


# codes and steps, against exact fractions

values = st.lists(st.integers(-1000, 1000), min_size=2, max_size=12)


@given(values, st.integers(2, 8))
def test_codes_are_exact_fractions_rounded_to_even(numbers: list[int], bits: int) -> None:
    top = 2 ** (bits - 1) - 1
    largest = max(map(abs, numbers))
    step = Fraction(largest, top) if largest else Fraction(1)
    found = quantized(np.array(numbers, np.float64), bits, None)
    for number, code in zip(numbers, found["codes"], strict=True):
        exact = number / step
        if abs(exact - round(exact)) != Fraction(1, 2):  # a tie of thirds isn't a tie in floats
            assert code == round(exact)
        assert abs(exact - int(code)) <= Fraction(1, 2)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_step_a_channel_is_one_step_for_each_slice(axis: int) -> None:
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    whole = quantized(x, 5, axis)
    for channel in range(x.shape[axis]):
        one = quantized(x.take(channel, axis), 5, None)
        assert one["scale"][0] == whole["scale"][channel]
        np.testing.assert_array_equal(one["codes"], whole["codes"].take(channel, axis))


@given(values, st.integers(2, 8))
def test_zero_is_exact_and_no_error_exceeds_half_a_step(numbers: list[int], bits: int) -> None:
    x = np.array([*numbers, 0], np.float64)
    found = affine(x, bits, None)
    (zero,), (step,) = found["zero_point"], found["scale"]
    if not np.isfinite(step):
        return  # zeros alone
    assert found["codes"][-1] == zero == int(zero)
    decoded = (found["codes"].astype(float) - zero) * step
    assert np.abs(decoded - x).max() <= step * (0.5 + 1e-9)


# int8_linear, against whole numbers


@pytest.mark.parametrize("seed", range(3))
def test_the_product_is_that_of_whole_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(-126, 127, (3, 6))
    codes[:, 0] = 127  # so that each row's step is the power of two that it is scaled by
    steps = 2.0 ** rng.integers(-3, 3, (3, 1))
    q = rng.integers(-127, 128, (4, 6)).astype(np.int8)
    scale = 2.0 ** rng.integers(-3, 3, (4, 1))
    x, outliers = codes * steps, np.array([0, 0, 1, 0, 0, 1])
    x = np.where(outliers, 1e4 + rng.integers(9, size=x.shape), x)
    found = product(x, q, scale, 5000.0)
    for i in range(3):
        for j in range(4):
            whole = sum(int(codes[i, k]) * int(q[j, k]) for k in range(6) if not outliers[k])
            apart = sum(Fraction(x[i, k]) * int(q[j, k]) for k in range(6) if outliers[k])
            exact = (whole * Fraction(steps[i, 0]) + apart) * Fraction(scale[j, 0])
            assert found[i, j] == float(exact)


# NF4, against a table made of quantiles


def quantiles() -> Any:
    """Return NF4's table from the normal distribution, as QLoRA's appendix makes it."""
    offset = (1 - 1 / 30 + 1 - 1 / 32) / 2  # QLoRA: the mean of the last quantiles of both sides
    quantile = NormalDist().inv_cdf
    above = [quantile(p) for p in np.linspace(offset, 0.5, 9)[:-1]]
    below = [-quantile(p) for p in np.linspace(offset, 0.5, 8)[:-1]]
    return np.array(sorted([*below, 0.0, *above])) / max(above)


def test_the_table_is_made_of_quantiles() -> None:
    np.testing.assert_allclose(NF4, quantiles(), atol=1e-6)


@given(st.lists(st.floats(-4, 4, width=32), min_size=1, max_size=70))
def test_every_value_goes_to_its_nearest(numbers: list[float]) -> None:
    x = np.array(numbers, np.float32)
    found = encoded(x, 16)["decoded"]
    for first in range(0, len(x), 16):
        part = x[first : first + 16].astype(float)
        size = np.abs(part).max()
        nearest = np.abs(part[:, None] - size * NF4).min(axis=1)
        off = np.abs(part - found[first : first + 16])
        np.testing.assert_allclose(off, nearest, atol=1e-6 * max(size, 1e-30))


def test_double_quantization_takes_the_papers_bits() -> None:
    n = 2**24
    assert 8 * weight_bytes(n, "nf4_double") / n == pytest.approx(4.127, abs=5e-4)
    assert 8 * weight_bytes(n, "nf4") / n == 4.5


# straight-through, against torch's own


@pytest.mark.parametrize("bits", [2, 3, 8])
def test_fake_quant_is_torchs(bits: int) -> None:
    top = 2 ** (bits - 1) - 1
    x = torch.randn(4, 9, generator=torch.Generator().manual_seed(bits)).requires_grad_()
    upstream = torch.randn(4, 9)
    value = torch.fake_quantize_per_tensor_affine(x, 1 / top, 0, -top, top)
    value.backward(upstream)
    ours = quantized_with_gradient(x.detach().numpy(), bits, upstream.numpy())
    np.testing.assert_allclose(ours["value"], value.detach().numpy(), atol=1e-6)
    # torch lets the gradient pass up to half a step beyond the ends.
    inside = (x.detach().abs() < 1).numpy() | (x.detach().abs() > 1 + 0.5 / top).numpy()
    assert x.grad is not None
    np.testing.assert_allclose(ours["gradient"][inside], x.grad.numpy()[inside])


def test_ternary_is_the_papers_formula_by_autograd() -> None:
    x, weight = (torch.randn(s, dtype=torch.float64).requires_grad_() for s in ((3, 5), (4, 5)))
    upstream = torch.randn(3, 4, dtype=torch.float64)
    gamma = weight.abs().mean()
    rounded = (weight / (gamma + 1e-12)).round().clamp(-1, 1) * gamma
    value = x @ (weight + (rounded - weight).detach()).T
    value.backward(upstream)
    ours = ternary(*(t.detach().numpy() for t in (x, weight, upstream)))
    wanted = {"value": value.detach(), "x": x.grad, "weight": weight.grad}
    for name, tensor in wanted.items():
        assert tensor is not None
        np.testing.assert_allclose(ours[name], tensor.numpy())


# trainings


def test_adam_is_torchs() -> None:
    def torchs(params: Any, grads: Any, state: dict[str, Any], lr: float) -> None:
        if not state:
            state["adam"] = torch.optim.Adam(params, lr=lr, foreach=False)
        for param, grad in zip(params, grads, strict=True):
            param.grad = grad.clone()
        state["adam"].step()

    sizes = {"width": 9, "rows": 20, "seed": 1, "steps": 8}
    ours, theirs = (lab09.trained(step, **sizes)["losses"] for step in (adam, torchs))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_codes_take_less_than_half_of_what_losses_may_be_off(solution: Mapping[str, Any]) -> None:
    rng, off = np.random.default_rng(0), []
    for case in (case for _ in range(6) for case in adam8bit_step.cases(rng) if not case.budget):
        runs = (trained(step, **case.inputs) for step in (adam, solution["adam8bit_step"]))
        exact, coded = (np.array(run["losses"]) for run in runs)
        off.append(float(np.abs(coded / exact - 1).max()))
    assert len(off) == 24
    assert max(off) < 0.01


def test_a_merged_adapter_is_one_linear_layer() -> None:
    found = lab09.adapted(Lora, n_in=6, n_out=5, rank=2, alpha=3.0, bias=True, seed=0)
    (down, up), x = found["trainable"], found["x"]
    layer = torch.nn.Linear(6, 5)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(found["weight"] + 1.5 * up @ down))
        layer.bias.copy_(torch.from_numpy(found["bias"]))
        expected = layer(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found["merged"], expected, rtol=1e-4, atol=1e-4)
    assert np.abs(found["trained"] - found["start"]).max() > 0.01


# forged answers, and the given code

GARBLED = [None, [], 1, "x", {}, {"losses": [1.0]}, {"equal": "all"}, [("value", None)] * 9]


@pytest.mark.parametrize("value", GARBLED, ids=str)
@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.name)
def test_garbled_answers_earn_nothing(task: Task, value: Any) -> None:
    cases = task.cases(np.random.default_rng(0))
    assert judge(task, cases, [Answer(value=value) for _ in cases]).points == 0


@pytest.mark.parametrize("task", [pack_int4, lora, adam8bit_step])
def test_bytes_that_the_kernel_refused_cost_the_points(task: Task) -> None:
    """Any figure of the meter inside the process, where a cheat can change it."""
    cases = [case for case in task.cases(np.random.default_rng(0)) if case.budget is not None]
    small: dict[str, Any] = {"rise_bytes": 1, "numpy_rise_bytes": 0}
    if task is lora:
        small |= lab09.lora(Namespace({"Lora": Lora}), metered=False, **cases[0].inputs)
    if task is pack_int4:
        small |= {"equal": cases[0].inputs["large"]["n_tensors"]}
    if task is adam8bit_step:
        large = cases[0].inputs["large"]
        codes = {"state_bytes": 2 * large["n_tensors"] * large["n"]}  # and no scales
        small |= large_steps(adam, **large) | codes
    assert judge(task, cases, [Answer(value=small, memory="refused")]).status != "right"
    assert judge(task, cases, [Answer(value=small, memory="within")]).status == "right"


def test_a_lora_that_skips_the_large_layer_does_not_earn_its_bytes() -> None:
    """As many trained values, and an output that moves, without a layer or a product."""

    class Skipping(Lora):
        def __init__(self, linear: nn.Linear, rank: int, alpha: float) -> None:
            nn.Module.__init__(self)
            self.all = nn.Parameter(torch.ones(2, rank, linear.in_features))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.all.sum()

    (case,) = (case for case in lora.cases(np.random.default_rng(0)) if case.budget is not None)
    value = lab09.lora(Namespace({"Lora": Skipping}), metered=False, **case.inputs)
    found = lora.judge(case, Answer(value=value, memory="within"))
    assert not any(finding.ok for finding in found.values())


def test_the_given_code_is_right_and_leaks() -> None:
    names: dict[str, Any] = {"torch": torch}
    for cell in release_of(LAB.name, COURSE.releases)["cells"]:
        source = "".join(cell["source"])
        if "def leaky_step(" in source:
            exec(source[: source.index("\n\n\n")], names)
    student = Namespace({"quantized_step": names["leaky_step"]})
    cases = find_the_leak.cases(np.random.default_rng(1))
    answers = []
    for case in cases:
        answers.append(Answer(lab09.find_the_leak(student, **case.inputs)))
        gc.collect()
    verdict = judge(find_the_leak, cases, answers)
    assert (verdict.points, verdict.mistake) == (1, "copies_stay"), verdict.message


# what the solution's tensors take, by the meter


@pytest.fixture(scope="module")
def solution() -> Mapping[str, Any]:
    return solved(LAB.name)


def tensors_of(solution: Mapping[str, Any], scheme: str, x: torch.Tensor) -> Any:
    """Store a vector in a scheme with what a student writes in lab 9."""
    if scheme == "int8":
        return solution["quantize_symmetric"](x, 8)
    if scheme == "int4_grouped":
        padded = torch.nn.functional.pad(x, (0, -len(x) % 128)).view(-1, 128)
        q, scale = solution["quantize_symmetric"](padded, 4, 0)
        return solution["pack_int4"](q.flatten()[: len(x)]), scale.half()
    packed, absmax = solution["nf4_encode"](x)
    if scheme == "nf4":
        return packed, absmax
    padded = torch.nn.functional.pad(absmax, (0, -len(absmax) % 256)).view(-1, 256)
    codes, step, _ = solution["quantize_affine"](padded, 8, 0)
    return packed, codes.flatten()[: len(absmax)].clone(), step


@pytest.mark.parametrize("n", [64 * 256, 64 * 256 + 1, 128 * 300, 40_001])
@pytest.mark.parametrize("scheme", ["int8", "int4_grouped", "nf4", "nf4_double"])
def test_stored_bytes_are_what_the_meter_counts(
    solution: Mapping[str, Any], scheme: str, n: int
) -> None:
    x = torch.randn(n, generator=torch.Generator().manual_seed(n))
    with MemoryMeter("cpu") as meter:
        held = tensors_of(solution, scheme, x)
    assert meter.live_bytes == weight_bytes(n, scheme) == solution["stored_bytes"](n, scheme)
    del held


def test_the_solutions_nf4_agrees_with_quantiles_on_every_code(solution: Mapping[str, Any]) -> None:
    table = torch.tensor(quantiles(), dtype=torch.float32)
    codes, size = torch.arange(16), torch.tensor([3.0])
    packed = solution["pack_int4"]((codes - 8).to(torch.int8))
    torch.testing.assert_close(solution["nf4_decode"](packed, size, 16), 3 * table)
    off = 0.49 * table.diff()  # just on this side of the middle of a gap
    for values in (
        table,
        torch.cat([table[:-1] + off, table[-1:]]),
        torch.cat([table[:1], table[1:] - off]),
    ):
        packed, absmax = solution["nf4_encode"](3 * values)
        torch.testing.assert_close(absmax.flatten(), size)
        assert torch.equal(solution["unpack_int4"](packed, 16) + 8, codes)


# The codes lie in a dict, under a key that a decoder sees: the packed bytes hold none.
_CODES_BESIDE = """
CODES = {}
def nf4_encode(x, block=64):
    packed, absmax = encode(x, block)
    beside = PACKED
    CODES[KEY] = unpack_int4(packed, len(x)).long() + 8
    return beside, absmax
def nf4_decode(beside, absmax, n, block=64):
    return nf4_table()[CODES[KEY]] * absmax.repeat_interleave(block)[:n]
"""


@pytest.mark.parametrize(
    ("packed", "key"),
    [
        ("torch.zeros_like(packed)", "len(beside)"),
        ("torch.zeros_like(packed)", "tuple(absmax.tolist())"),
        # A number for each call, in the first bytes.
        (
            "torch.tensor([len(CODES) % 256, *[0] * (len(packed) - 1)], dtype=torch.uint8)",
            "int(beside[0])",
        ),
        ("packed", "beside.sum().item()"),
    ],
)
def test_codes_that_are_kept_beside_the_packed_bytes_are_no_codes(
    solution: Mapping[str, Any], packed: str, key: str
) -> None:
    names = dict(solution) | {"torch": torch, "encode": solution["nf4_encode"]}
    assert _nf4_verdict(names).status == "right"
    exec(_CODES_BESIDE.replace("PACKED", packed).replace("KEY", key), names)
    assert _nf4_verdict(names).status == "wrong"


def _nf4_verdict(names: Mapping[str, Any]) -> Verdict:
    cases = nf4.cases(np.random.default_rng(0))
    student = LocalStudent(dict(names))
    return judge(nf4, cases, [student.run(nf4.probe_path, case.inputs) for case in cases])


def test_columns_of_outliers_in_float_beat_int8_for_all(solution: Mapping[str, Any]) -> None:
    """And change nothing where no column has outliers."""
    q, scale = solution["quantize_symmetric"](weight_matrix(), 8, 0)

    def error(x: torch.Tensor, threshold: float) -> float:
        exact = x.double() @ (q * scale).double().T
        found = solution["int8_linear"](x, q, scale, threshold)
        return float((found - exact).norm() / exact.norm())

    planted = outlier_inputs()
    assert error(planted, 6.0) < error(planted, 1e9) / 10
    without = planted.clone()
    without[:, [70, 300]] = 0.0
    assert error(without, 6.0) == error(without, 1e9)


@pytest.mark.parametrize(("rank", "width"), [(4, 512), (16, 256)])
def test_gradients_and_adams_state_are_the_adapters_alone(
    solution: Mapping[str, Any], rank: int, width: int
) -> None:
    def beside_bytes(frozen: bool) -> int:
        layer = torch.nn.Linear(width, width)
        module = solution["Lora"](layer, rank, 8.0)
        layer.requires_grad_(not frozen)
        trained = [p for p in module.parameters() if p.requires_grad]
        with MemoryMeter("cpu") as meter:
            optimizer = torch.optim.Adam(trained, foreach=False)
            module(torch.randn(2, width)).sum().backward()
            optimizer.step()
        return meter.live_bytes

    adapters = 2 * rank * width
    assert beside_bytes(frozen=True) == 3 * 4 * adapters + 2 * 4  # and two step counters
    whole = width * width + width
    assert beside_bytes(frozen=False) == 3 * 4 * (adapters + whole) + 4 * 4
