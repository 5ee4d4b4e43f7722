"""Lab 2's tasks against independent oracles, and the bank of answers to them."""

from __future__ import annotations

import gc
import math
import re
from bisect import bisect_right
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from autograder.content.lab02 import LAB, measured_step, training
from autograder.content.lab02.answers import exact_bytes
from autograder.content.lab02.find_the_leak import evaluate, report_of_losses
from autograder.content.lab02.measured_step import measured_training
from autograder.content.lab02.training_rules import rule_of_the_lab
from autograder.model.judge import judge
from autograder.model.task import Memory, Task, Verdict
from autograder.sandbox.host.in_process import LocalStudent
from autograder.trials.answer_bank import read_bank
from peakmem.labs import lab02
from peakmem.measure.meter import MemoryMeter
from peakmem.measure.reference_models import GPT, training_step
from peakmem.predict.step_ledger import build_ledger
from peakmem.probes.lab02 import evaluate_batches, losses_bound
from peakmem.specs.models import GPT3_TABLE, ModelShape, parameter_count
from peakmem.specs.recipes import Recipe
from tests.autograder.content.bank_in_process import BANK, check_bank

TASKS = {task.name: task for task in LAB.tasks}


def grade(name: str, function: Any, seed: int = 0) -> Verdict:
    """Grade a function as the answer to a task."""
    task = TASKS[name]
    student = LocalStudent({task.defines[0]: function})
    cases = task.cases(np.random.default_rng(seed))
    return judge(task, cases, [student.run(task.probe_path, case.inputs) for case in cases])


# The bank


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.name)
def test_the_bank_is_graded_as_it_says(task: Task) -> None:
    check_bank(LAB, task)


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.name)
def test_every_mistake_is_in_the_bank(task: Task) -> None:
    assert set(task.mistakes) <= {e.mistake for e in read_bank(BANK, LAB) if e.task == task.id}


# The references: each gives full marks to an independent oracle


def bytes_by_fractions(n_params: int, dtype: str) -> int:
    if dtype not in ("fp64", "fp32", "fp16", "bf16", "fp8", "int8", "int4"):
        raise ValueError(dtype)
    bits = re.sub(r"\D", "", dtype)
    return math.ceil(Fraction(n_params) * int(bits) / 8)


def parameters_of_the_library(
    n_layers: int, d_model: int, vocab: int = 50257, context: int = 2048, tied: bool = True
) -> dict[str, int]:
    return parameter_count(ModelShape("", n_layers, d_model, 1, vocab, context, tied=tied))


def rows_by_fractions(table: list[dict[str, Any]]) -> set[str]:
    return {
        row["name"] for row in table if Fraction(row["d_model"], row["n_heads"]) != row["d_head"]
    }


def elements_by_torch(op: str, **dims: int) -> int:
    """The size of what torch's own operations put out, on shapes without memory."""
    if op == "conv2d":
        batch, channels, wide, high = (dims[name] for name in ("bs", "nc", "wo", "ho"))
        taken = torch.empty(batch, 1, wide, high, device="meta")
        weight = torch.empty(channels, 1, 1, 1, device="meta")
        return torch.nn.functional.conv2d(taken, weight).numel()
    if op == "linear":
        batch, m, n, p = (dims[name] for name in ("bs", "m", "n", "p"))
        weight = torch.empty(n, p, device="meta")
        return (torch.empty(batch, m, n, device="meta") @ weight).numel()
    if op == "transformer":
        return torch.empty(tuple(dims.values()), device="meta").numel()
    raise ValueError(op)


def bytes_of_meta_tensors(n_layers: int, tokens: int, d_model: int, size: int) -> int:
    dtype = {1: torch.int8, 2: torch.float16, 4: torch.float32}[size]
    return torch.empty(n_layers, tokens, d_model, dtype=dtype, device="meta").nbytes


def layer_by_tensors(
    seq: int, batch: int, d_model: int, n_heads: int, attention: str = "standard"
) -> dict[str, int]:
    """Add up the tensors that section 4.1 of the paper names, one by one."""
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    wide: tuple[int, ...] = (seq, batch, d_model)
    pairs = (n_heads, seq, seq, batch)
    half, mask = torch.float16, torch.bool
    kept: dict[str, list[tuple[tuple[int, ...], torch.dtype]]] = {
        "attention": [(wide, half)] * 5 + [(wide, mask)],  # input, q, k, v, input of the projection
        "mlp": [(wide, half), ((4, *wide), half), ((4, *wide), half), (wide, mask)],
        "layer_norms": [(wide, half)] * 2,
    }
    if attention == "standard":
        kept["attention"] += [(pairs, half), (pairs, mask), (pairs, half)]
    return {
        part: sum(torch.empty(size, dtype=dtype, device="meta").nbytes for size, dtype in tensors)
        for part, tensors in kept.items()
    }


def lives_by_simulation(graph: list[dict[str, Any]], training: bool) -> list[tuple[str, int, int]]:
    """Run all steps in order, and note at each what it makes and reads."""
    made: dict[str, int] = {}
    read: dict[str, int] = {}
    program = [(op, "inputs") for op in graph]
    if training:
        program += [(op, "saves") for op in reversed(graph)]
    for step, (op, key) in enumerate(program):
        made.setdefault(op["name"], step)
        read.update(dict.fromkeys(op[key], step))
    return [(name, step, max(step, read.get(name, step))) for name, step in made.items()]


def bytes_by_differences(tensors: list[list[int]], n_steps: int) -> list[int]:
    """The sum of births less deaths, on a range wide enough for all tensors."""
    steps = [0, n_steps, *(step for _, first, last in tensors for step in (first, last))]
    lowest, change = min(steps), np.zeros(max(steps) - min(steps) + 2, np.int64)
    for size, first, last in tensors:
        change[first - lowest] += size
        change[last + 1 - lowest] -= size
    live: list[int] = np.cumsum(change)[-lowest : n_steps - lowest].tolist()
    return live


def batch_by_bisection(seq: int, shape: Any, budget: int) -> int:
    """The first batch whose step breaks the budget, less one; bisect asks for a few of them."""
    counted = parameters_of_the_library(shape.n_layers, shape.d_model, shape.vocab, shape.context)
    state = weight_bytes_of_adam(sum(counted.values()))

    def needed(batch: int) -> int:
        # By one sequence: torch counts a tensor's bytes in 64 bits.
        layer = layer_by_tensors(seq, 1, shape.d_model, shape.n_heads)
        n_layers: int = shape.n_layers
        return state + batch * n_layers * sum(layer.values())

    return max(bisect_right(range(5000), budget, key=needed) - 1, 0)


def weight_bytes_of_adam(n_params: int) -> int:
    names = ("fp16", "fp16", "fp32", "fp32", "fp32")  # weights, gradients, copy, two moments
    return sum(bytes_by_fractions(n_params, name) for name in names)


def training_by_the_ledger(shape: Any, batch: int, seq: int) -> dict[str, int]:
    """The library's prediction, which plays the step operator by operator and runs nothing."""
    sizes = (shape.n_layers, shape.d_model, shape.n_heads, shape.vocab, shape.context)
    step = Recipe(precision="fp32", optimizer="adamw", batch=batch, sequence=seq)
    ledger = build_ledger(ModelShape("drawn", *sizes), step, profile="torch-cpu")
    backward = next(i for i, e in enumerate(ledger.events) if e.name == "start of backward")
    kept, end = ledger.by_owner(backward), ledger.by_owner(len(ledger.events) - 1)
    return {
        "parameters": end["parameter"],
        "gradients": end["gradient"],
        "optimizer": end["optimizer_state"],
        "saved_activations": kept["activation"],
        "logits": kept["logits"],
        "peak": ledger.peak_bytes,
    }


def losses_by_hand(model: torch.nn.Module, batches: Any) -> list[torch.Tensor]:
    """The cross entropy from its definition, in float64, without a graph."""
    losses = []
    for x, targets in batches:
        logits = model(x).detach().double()
        right = logits[range(len(targets)), targets]
        losses.append((logits.exp().sum(1).log() - right).mean())
    return losses


ORACLES = {
    "find_the_leak": losses_by_hand,
    "weight_bytes": bytes_by_fractions,
    "gpt_parameters": parameters_of_the_library,
    "inconsistent_rows": rows_by_fractions,
    "activation_elements": elements_by_torch,
    "boundary_bytes": bytes_of_meta_tensors,
    "layer_activation_bytes": layer_by_tensors,
    "lifetimes": lives_by_simulation,
    "live_bytes": bytes_by_differences,
    "largest_batch": batch_by_bisection,
    "predict_training": training_by_the_ledger,
}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("seed", range(3))
def test_an_independent_oracle_earns_full_marks(name: str, seed: int) -> None:
    verdict = grade(name, ORACLES[name], seed)
    assert verdict.status == "right", verdict.message


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("value", [None, 3.0, "x", [], {}, {"a": None}, float("nan"), True])
def test_another_kind_of_answer_earns_nothing(name: str, value: Any) -> None:
    assert grade(name, lambda *arguments, **named: value).points == 0


def test_only_a_mutant_may_be_a_float() -> None:
    assert exact_bytes(1 / 3, (1 / 3) * (1 + 1e-15))
    assert not exact_bytes(1 / 3, 0.3334)
    assert not exact_bytes(3, 3.0)
    assert not exact_bytes(3.0, 3)
    assert exact_bytes({"a": 0.5}, {"a": 0.5})
    assert not exact_bytes({"a": 0.5}, {"b": 0.5})


# The reference for predict_training


def drawn_steps(seed: int) -> list[tuple[dict[str, int], int, int]]:
    cases = TASKS["predict_training"].cases(np.random.default_rng(seed))
    return [tuple(case.inputs["calls"][0]) for case in cases]


def test_the_measured_step_is_the_third_one_under_torchs_own_adamw() -> None:
    for shape, batch, seq in drawn_steps(0)[::2]:
        model = GPT(SimpleNamespace(**shape))
        optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
        data = [(torch.zeros(batch, seq, dtype=torch.long),) * 2]
        for _ in range(2):
            training_step(model, optimizer, data)
        targets = data[0][0].clone()
        meter = MemoryMeter("cpu").track(model, optimizer, data, targets)
        optimizer.zero_grad(set_to_none=True)
        with meter:
            training_step(model, optimizer, [(data[0][0], targets)])
        assert measured_training(shape, batch, seq)["peak"] == meter.peak_bytes


def test_a_measured_step_leaves_no_tensor_behind() -> None:
    def bytes_live() -> int:
        gc.collect()
        tensors = [x for x in gc.get_objects() if issubclass(type(x), torch.Tensor)]
        return sum(x.untyped_storage().nbytes() for x in tensors)

    shape, batch, seq = drawn_steps(0)[0]
    before = bytes_live()
    measured_training(shape, batch, seq)
    assert bytes_live() == before


@pytest.mark.parametrize("seed", range(4))
def test_the_rules_of_the_text_are_near_every_drawn_step(seed: int) -> None:
    at_logits = 0
    for shape, batch, seq in drawn_steps(seed):
        ruled, measured = rule_of_the_lab(shape, batch, seq), measured_training(shape, batch, seq)
        statistics = 4 * batch * seq * (shape["n_layers"] * (4 + shape["n_heads"]) + 2 + 4)
        assert statistics < 0.009 * ruled["saved_activations"], "they may be left out"
        for key, value in measured.items():
            tolerance = 0.001 if key in ("saved_activations", "peak") else 0
            assert abs(ruled[key] - value) <= tolerance * value, key
        state = ruled["parameters"] + ruled["optimizer"]
        at_logits += ruled["peak"] == state + ruled["saved_activations"] + 3 * ruled["logits"]
    assert at_logits == 8, "eight of twelve peak at the logits' gradient"


@pytest.mark.parametrize("key", ["saved_activations", "peak", "logits"])
@pytest.mark.parametrize("factor", [0.94, 0.985, 0.9905, 0.993, 1, 1.0075, 1.0095, 1.015])
def test_an_answer_near_the_rules_needs_no_measuring_and_gets_the_same_verdict(
    key: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(shape: SimpleNamespace, batch: int, seq: int) -> dict[str, int]:
        sizes = rule_of_the_lab(vars(shape), batch, seq)
        return sizes | {key: int(sizes[key] * factor)}

    near = grade("predict_training", answer, seed=5)
    monkeypatch.setattr(training, "_right_by_the_rules", lambda rules, got: False)
    assert grade("predict_training", answer, seed=5) == near


def test_only_answers_off_the_rules_are_compared_with_a_measured_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured = []
    monkeypatch.setattr(
        measured_step,
        "measured_training",
        lambda *call: measured.append(call) or measured_training(*call),
    )
    right = ORACLES["predict_training"]
    assert grade("predict_training", right).points == 4
    assert measured == []
    assert grade("predict_training", lambda *call: right(*call) | {"logits": 1}).points == 2
    assert len(measured) == 12


# What the notebook says


def test_points_are_those_of_the_contract() -> None:
    contract = {
        "weight_bytes": 1,
        "gpt_parameters": 4,
        "inconsistent_rows": 1,
        "activation_elements": 1,
        "boundary_bytes": 1,
        "layer_activation_bytes": 3,
        "lifetimes": 3,
        "live_bytes": 2,
        "largest_batch": 2,
        "predict_training": 4,
        "find_the_leak": 2,
    }
    assert {task.name: task.points for task in LAB.tasks} == contract


def test_what_the_notebook_says_of_weights_and_parameters() -> None:
    assert bytes_by_fractions(175 * 10**9, "fp16") == 350 * 10**9
    assert [round(gb * 1e9 / 2**30) for gb in (350, 700)] == [326, 652]
    sizes = {row["name"]: (row["n_layers"], row["d_model"]) for row in GPT3_TABLE}
    large = parameters_of_the_library(*sizes["GPT-3 175B"])
    small = parameters_of_the_library(*sizes["GPT-3 Small"])
    assert sum(large.values()) == 174_604_259_328
    assert f"{2 * sum(large.values()) / 1e9:.1f}" == "349.2"
    assert sum(small.values()) == 125_226_240
    assert 0.3 < (small["token_embedding"] + small["position_embedding"]) / 125_226_240 < 0.35
    assert 0.66 < large["mlp"] / sum(large.values()) < 0.67


def test_what_the_notebook_says_of_the_table() -> None:
    table = [dict(row) for row in GPT3_TABLE]
    assert rows_by_fractions(table) == {"GPT-3 XL", "GPT-3 13B"}
    assert sum(parameters_of_the_library(24, 2048).values()) // 10**8 == 13
    billions = [sum(parameters_of_the_library(40, width).values()) / 1e9 for width in (5120, 5140)]
    assert [f"{n:.1f}" for n in billions] == ["12.9", "13.0"]
    assert 5140 % 40 != 0


def test_the_notebook_has_the_papers_table(repository: Path) -> None:
    source = (repository / "solutions" / "lab02_sizing.py").read_text("utf-8")
    for row in GPT3_TABLE:
        values = ", ".join(str(value) for value in list(row.values())[1:])
        assert f'("{row["name"]}", {values})' in source


def test_what_the_notebook_says_of_boundaries() -> None:
    per_layer = {size: bytes_of_meta_tensors(1, 3_200_000, 12288, size) for size in (2, 4)}
    assert {size: f"{n / 1e9:.2f}" for size, n in per_layer.items()} == {2: "78.64", 4: "157.29"}
    assert [f"{96 * n / 1e9:.1f}" for n in per_layer.values()] == ["7549.7", "15099.5"]
    assert round((96 * per_layer[2] - 96 * 78e9) / 1e9) == 62
    assert 96 * per_layer[2] // (80 * 10**9) == 94  # H100s filled


def test_what_the_notebook_says_of_a_layer() -> None:
    sbh = 2048 * 12288
    flash, standard = (
        sum(layer_by_tensors(2048, 1, 12288, 96, kind).values()) for kind in ("flash", "standard")
    )
    assert (flash, standard) == (17 * 2 * sbh, 57 * 2 * sbh)
    assert round(96 * standard / 1e9) == 275
    small = layer_by_tensors(2, 1, 4, 2)
    assert small == {"attention": 128, "mlp": 152, "layer_norms": 32}
    assert layer_by_tensors(2, 1, 4, 2, "flash")["attention"] == 88


def test_what_the_notebook_says_of_the_largest_batch() -> None:
    assert sum(parameters_of_the_library(1, 2, 10, 5).values()) * 16 == 1728
    assert [sum(layer_by_tensors(seq, 1, 2, 1).values()) for seq in (3, 7)] == [249, 721]
    gpt2 = SimpleNamespace(n_layers=12, d_model=768, n_heads=12, vocab=50257, context=1024)
    tokens = [seq * batch_by_bisection(seq, gpt2, 16 * 10**9) for seq in (256, 1024, 4096)]
    assert tokens == sorted(tokens, reverse=True)
    assert len(set(tokens)) == 3


def test_what_the_notebook_says_of_its_picture() -> None:
    state = 16 * sum(parameters_of_the_library(12, 768, 50257, 1024).values())

    def needed(seq: int, kind: str) -> float:
        return (state + 12 * sum(layer_by_tensors(seq, 1, 768, 12, kind).values())) / 1e9

    assert needed(4096, "standard") < 16 < needed(4224, "standard")
    assert needed(8192, "flash") < 5
    assert round(needed(1, "flash")) == 2


# Find the leak


@pytest.mark.parametrize("seed", range(20))
def test_the_report_without_torch_is_the_probes(seed: int) -> None:
    for case in TASKS["find_the_leak"].cases(np.random.default_rng(seed)):
        sizes: Any = case.inputs
        measured, computed = evaluate_batches(evaluate, **sizes), report_of_losses(**sizes)
        assert computed.keys() == measured.keys()
        for losses in ("losses", "again"):
            assert computed.pop(losses) == pytest.approx(measured.pop(losses), rel=1e-5)
        assert computed == measured


def test_batches_differ_by_more_than_a_judge_overlooks() -> None:
    for seed in range(20):
        case = TASKS["find_the_leak"].cases(np.random.default_rng(seed))[0]
        losses = sorted(report_of_losses(**case.inputs)["losses"])
        assert min(np.diff(losses)) > 1e-3


@pytest.mark.parametrize("memory", ["", "within", "refused"])
def test_the_kernels_word_counts_over_the_meters(memory: Memory) -> None:
    task = TASKS["find_the_leak"]
    case = task.cases(np.random.default_rng(0))[-1]
    answer = LocalStudent({"evaluate": evaluate}).run(task.probe_path, case.inputs)
    points = judge(task, [case], [replace(answer, memory=memory)]).points
    assert points == (0 if memory == "refused" else 2)


def test_the_bound_is_two_batches_and_the_model() -> None:
    sizes = {"count": 1, "rows": 512, "width": 128}
    one, four = losses_bound(sizes), losses_bound(sizes | {"rows": 4 * 512})
    assert (four - one) / 6 == 12 * 512 * 128 * 4
    assert round(losses_bound(sizes) / 2**20, 1) == 6.3


# A real step's saved tensors, as the notebook shows them


def test_a_layer_keeps_sixteen_and_the_end_two() -> None:
    shape = {"n_layers": 2, "d_model": 128, "n_heads": 2, "vocab": 1000, "context": 64}
    saved = lab02.measured_saved(SimpleNamespace(**shape), 8, 32)
    assert abs(saved - measured_training(shape, 8, 32)["saved_activations"]) < 64  # the loss
    assert 0 < saved / (4 * 256 * 128 * (2 * 16 + 2)) - 1 < 0.01


def test_the_notebook_names_each_phase_of_a_peak() -> None:
    phases = {}
    for vocab, batch in [(1000, 8), (4000, 1)]:
        shape = SimpleNamespace(n_layers=2, d_model=128, n_heads=4, vocab=vocab, context=64)
        phases[vocab] = lab02.measured_step(shape, batch, 32).peak_phase
    assert phases == {1000: "backward", 4000: "optimizer"}


def test_every_layer_has_twelve_tensors_and_four_are_outside() -> None:
    shapes = [
        SimpleNamespace(n_layers=n, d_model=8, n_heads=1, vocab=8, context=8) for n in (1, 2, 5)
    ]
    assert [len(list(GPT(shape).parameters())) for shape in shapes] == [16, 28, 64]


def test_running_off_the_end_of_a_list_is_not_taken_for_negative_indices() -> None:
    def differences_not_cut_off(tensors: Any, n_steps: int) -> list[int]:
        differences = [0] * (n_steps + 2)
        for size, first, last in tensors:
            start = max(first, 0)
            differences[start] += size
            differences[max(min(last, n_steps) + 1, start)] -= size
        return list(accumulate(differences))[:n_steps]

    assert grade("live_bytes", differences_not_cut_off).mistake == "not_cut_off"
