"""Lab 3: the bank's answers, torch as oracle of the mutants, and the budget's judge on figures."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from autograder.content.lab03 import LAB, adam_step, lean_adam_step
from autograder.content.lab03.adam import MUTANTS, _walk, torch_paths
from autograder.content.lab03.adam_step import NO_TORCH_OPTIM, path_cases
from autograder.content.lab03.measured_state_bytes import measured_state_bytes
from autograder.content.lab03.peak_of_step import measured_peak
from autograder.content.lab03.state_bytes import state_bytes_of
from autograder.content.lab03.step_in_backward import step_in_backward
from autograder.content.lab03.step_timeline import step_timeline
from autograder.model.judge import judge
from autograder.model.task import Answer, Case, Task, Verdict
from autograder.sandbox.host.budget import HELD_BYTES
from autograder.sandbox.host.in_process import LocalStudent
from autograder.sandbox.host.sandbox import Sandbox
from peakmem.probes.lab03 import gradients_of
from tests.answers import first_right, mistakes_shown, source_of
from tests.autograder.content.bank_in_process import check_bank
from tests.autograder.uses import names_used

MIB = 2**20


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_bank(task: Task) -> None:
    check_bank(LAB, task)


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_every_mistake_stands_in_the_bank(task: Task) -> None:
    shared = adam_step.mistakes if task is lean_adam_step else {}  # they are in its own folder
    assert {name for name in task.mistakes if name not in shared} <= mistakes_shown(task)


def test_every_mutant_has_its_sentence() -> None:
    assert MUTANTS.keys() <= adam_step.mistakes.keys()


def _said(path: list[list[Any]]) -> dict[str, Any]:
    """A path as the probe reports it."""
    rows = [np.stack(values) for values in zip(*path, strict=True)]
    return {"parameters": rows, "changed": None, "state_used": True}


# The reference.


@pytest.mark.parametrize("seed", range(5))
def test_the_reference_is_torch_optim_adam_and_so_is_the_mutants_base(seed: int) -> None:
    for case in path_cases(np.random.default_rng(seed)):
        models, options = case.inputs["models"], case.inputs["options"]
        for model, path, base in zip(
            models, torch_paths(models, options), _walk(models, options), strict=True
        ):
            parameters = [torch.tensor(a, requires_grad=True) for a in model["parameters"]]
            optimizer = torch.optim.Adam(parameters, foreach=False, **options)
            for call, (after, ours) in enumerate(zip(path, base, strict=True)):
                for parameter, gradient in zip(parameters, gradients_of(model, call), strict=True):
                    parameter.grad = None if gradient is None else torch.tensor(gradient)
                optimizer.step()
                for parameter, array, mine in zip(parameters, after, ours, strict=True):
                    np.testing.assert_array_equal(parameter.detach().numpy(), array)
                    np.testing.assert_allclose(mine, array, rtol=1e-12, atol=1e-18)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= 2)) for seed in range(5)]
)
def test_every_mutant_is_told_from_torch_in_every_draw(seed: int) -> None:
    cases = path_cases(np.random.default_rng(seed))
    for name, mutant in MUTANTS.items():
        answers = []
        for case in cases:
            with np.errstate(all="ignore"):
                paths = map(list, mutant(case.inputs["models"], case.inputs["options"]))
            answers.append(Answer([_said(path) for path in paths]))
        assert judge(adam_step, cases, answers).mistake == name


def test_an_error_of_two_billionths_of_the_way_is_seen_and_half_a_billionth_is_not() -> None:
    case = path_cases(np.random.default_rng(0))[0]
    (path,) = torch_paths(case.inputs["models"], case.inputs["options"])
    start = case.inputs["models"][0]["parameters"][0]
    way = np.max(np.abs(path[0][0] - start))

    def passes(part: float) -> bool:
        moved = [[array.copy() for array in after] for after in path]
        moved[0][0][0] += part * way
        return adam_step.judge(case, Answer([_said(moved)]))["first step"].ok

    assert passes(0.5e-9)
    assert not passes(2e-9)


@pytest.mark.parametrize(
    "value",
    [
        *(None, [], [None], [{}], [{"parameters": []}], {"parameters": []}, "x", 1.0),
        [{"parameters": [np.zeros((1, *s)) for s in ((5,), (6,), (3, 4), (2, 2, 3))]}],
        [{"parameters": [np.zeros((2, *s)) for s in ((5,), (2, 3), (3, 4), (2, 2, 3))]}],
        [{"parameters": [np.zeros((1, *s), int) for s in ((5,), (2, 3), (3, 4), (2, 2, 3))]}],
        [{"parameters": [np.zeros((1, 5))]}],
    ],
)
def test_garbled_answers_are_wrong_and_break_nothing(value: Any) -> None:
    case = path_cases(np.random.default_rng(0))[0]
    assert not adam_step.judge(case, Answer(value))["first step"].ok
    large = lean_adam_step.cases(np.random.default_rng(0))[-1]
    assert not lean_adam_step.judge(large, Answer(value))["under the budget"].ok


# Forbidden tools in solutions.


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ndef adam_step(*a): torch.optim.Adam(a)",
        "from torch.optim import Adam\ndef adam_step(*a): Adam(a)",
        "from torch import optim as o\ndef adam_step(*a): o.Adam(a)",
        "from torch.optim.adam import adam as helper\ndef adam_step(*a): helper(a)",
        "import torch as t\ndef adam_step(*a): t._fused_adam_(*a)",
        "import torch\ndef adam_step(*a): torch.ops.aten._fused_adamw_.default(*a)",
        "import torch\ndef adam_step(*a): getattr(torch, 'optim').Adam(a)",
        "import sys\ndef adam_step(*a): sys.modules['torch.optim'].Adam(a)",
        "import importlib\ndef adam_step(*a): importlib.import_module('torch.optim').Adam(a)",
    ],
)
def test_torchs_adam_is_banned_by_every_plain_route(source: str) -> None:
    assert names_used(NO_TORCH_OPTIM, ("adam_step",), [source])


def test_a_student_may_call_his_own_things_adam() -> None:
    source = "class Adam: ...\ndef adam(): ...\ndef adam_step(*a): Adam(); adam()"
    assert not names_used(NO_TORCH_OPTIM, ("adam_step",), [source])


# The budget's judge.


def _large(**changes: int) -> tuple[Case, dict[str, Any], int]:
    """A large case, the answer of a perfect step with some figures changed, and P in bytes."""
    case = lean_adam_step.cases(np.random.default_rng(3))[-1]
    names: dict[str, Any] = {}
    exec(source_of(lean_adam_step, "right_halving"), names)
    value = LocalStudent(names).run(lean_adam_step.probe_path, case.inputs).value
    parameter_bytes = 4 * sum(int(np.prod(shape)) for shape in case.inputs["large"]["shapes"])
    figures = {"rise_bytes": 2 * parameter_bytes, "kept_bytes": 2 * parameter_bytes}
    value |= {**figures, "numpy_rise_bytes": 0, "numpy_kept_bytes": 0}
    return case, {**value, **changes}, parameter_bytes


def _judged(case: Case, answer: Answer) -> Verdict:
    only = [case]
    return judge(lean_adam_step, only, [answer])


@pytest.fixture(scope="module")
def large() -> tuple[Case, dict[str, Any], int]:
    return _large()


def _with(value: dict[str, Any], **more: int) -> dict[str, Any]:
    return {**value, **{name: value[name] + extra for name, extra in more.items()}}


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        *(("rise_bytes", MIB), ("numpy_rise_bytes", MIB)),
        *(("kept_bytes", 64 * 1024), ("numpy_kept_bytes", 64 * 1024)),
    ],
)
def test_the_budget_is_kept_to_the_byte(
    large: tuple[Case, dict[str, Any], int], name: str, allowed: int
) -> None:
    case, value, _ = large
    assert _judged(case, Answer(_with(value, **{name: allowed}))).status == "right"
    assert _judged(case, Answer(_with(value, **{name: allowed + 1}))).status != "right"


def test_the_budget_is_not_earned_by_a_step_that_is_not_adams(
    large: tuple[Case, dict[str, Any], int],
) -> None:
    case, value, _ = large
    moved = [array * 1.001 for array in value["models"][0]["parameters"]]
    wrong = {**value, "models": [{**value["models"][0], "parameters": moved}]}
    assert _judged(case, Answer(wrong)).earned["under the budget"] == 0


@pytest.mark.parametrize("task", [lean_adam_step, step_in_backward])
def test_the_kernels_word_counts_and_the_meters_only_without_it(task: Task) -> None:
    case, value = _measured_with_the_bank(task)
    above = _with(value, rise_bytes=64 * MIB)
    (part,) = case.parts
    right = {
        (memory, metered is above)
        for memory in ("", "within", "refused")
        for metered in (value, above)
        if judge(task, [case], [Answer(metered, memory=memory)]).earned[part]
    }
    assert right == {("", False), ("within", False), ("within", True)}


def _measured_with_the_bank(task: Task) -> tuple[Case, dict[str, Any]]:
    """The measured case of a task, and a right answer's result for it."""
    case = next(c for c in task.cases(np.random.default_rng(5)) if c.budget is not None)
    names: dict[str, Any] = {}
    exec(first_right(task), names)
    return case, LocalStudent(names).run(task.probe_path, case.inputs).value


@pytest.mark.parametrize("task", [lean_adam_step, step_in_backward])
def test_the_budget_is_the_bound_and_what_the_probe_itself_takes(task: Task) -> None:
    case = next(c for c in task.cases(np.random.default_rng(7)) if c.budget is not None)
    if task is lean_adam_step:
        sizes = [4 * math.prod(shape) for shape in case.inputs["large"]["shapes"]]
        bound, given = 2 * sum(sizes) + MIB, 2 * sum(sizes)
        # A scratch that the notebook may hold unseen is smaller than the smallest row.
        assert 4 * case.inputs["large"]["shapes"][1][1] > HELD_BYTES + MIB
    else:
        sizes = [4 * a * b for a, b in itertools.pairwise(case.inputs["widths"])]
        bound, given = 2 * max(sizes), sum(sizes)
        assert sum(sizes) - bound > HELD_BYTES + 2 * MIB  # all gradients are far more
    assert case.budget is not None
    assert 2 * MIB <= case.budget.bytes - given - bound < 3 * MIB


@pytest.mark.parametrize(
    "ends",
    [
        *([], [[0.5, 0.5]] * 11, [[0.5, 0.5, 0.5]] * 12, [[0.5, "x"]] * 12, None),
        *([[math.nan, math.nan]] * 12, [[0.5, 0.5]] * 12),
    ],
)
def test_the_steps_of_the_measured_backward_are_judged(ends: Any) -> None:
    case, value = _measured_with_the_bank(step_in_backward)
    right = judge(step_in_backward, [case], [Answer(value, memory="within")])
    wrong = judge(step_in_backward, [case], [Answer({"ends": ends}, memory="within")])
    assert (right.earned["gradients live at once"], right.status) == (2, "right")
    assert wrong.earned["gradients live at once"] == 0


def test_messages_of_a_measured_task_hold_no_measured_figures(
    large: tuple[Case, dict[str, Any], int],
) -> None:
    case, value, parameter_bytes = large
    for extra in (2 * MIB, 2 * MIB + 4096):
        said = {
            _judged(case, Answer(_with(value, **{name: extra}))).message
            for name in ("rise_bytes", "kept_bytes")
        }
        assert len(said) == 2
        assert not any(str(number) in text for text in said for number in (extra, parameter_bytes))


# The probe.


def _noted(step: Callable[..., None]) -> list[dict[str, Any]]:
    case = path_cases(np.random.default_rng(0))[0]
    answer = LocalStudent({"adam_step": step}).run(adam_step.probe_path, case.inputs)
    assert answer.raised is None
    found: list[dict[str, Any]] = answer.value
    return found


def test_the_probe_gives_leaves_in_three_layouts_and_an_empty_plain_dict() -> None:
    def look(params: Any, grads: Any, state: Any, **_: float) -> None:
        assert all(p.is_leaf and p.requires_grad for p in params)
        assert [p.is_contiguous() for p in params] == [True, False, False, False]
        assert [g.shape for g in grads] == [p.shape for p in params]
        assert type(state) is dict
        assert not state

    assert _noted(look)[0]["changed"] is None
    assert _noted(look)[0]["state_used"] is False


def test_the_probe_notes_what_was_changed() -> None:
    def gradients(params: Any, grads: Any, state: Any, **_: float) -> None:
        grads[1].mul_(2)

    def lists(params: Any, grads: Any, state: Any, **_: float) -> None:
        grads[1] = grads[1] * 2

    def leaves(params: Any, grads: Any, state: Any, **_: float) -> None:
        params[0].requires_grad_(False)

    found = [_noted(step)[0]["changed"] for step in (gradients, lists, leaves)]
    assert found == ["gradients", "lists", "requires_grad"]


# The budget, with a real process.

_HIDES_FROM_THE_METER = """
import torch
from torch.utils._python_dispatch import _disable_current_modes

def update(p, g, own, lr, betas, eps):
    t = own["t"] = own["t"] + 1
    own["m"].mul_(betas[0]).add_(g, alpha=1 - betas[0])
    own["v"].mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
    with _disable_current_modes():  # in here the meter is deaf
        root = (own["v"] / (1 - betas[1] ** t)).sqrt() + eps
        p -= lr / (1 - betas[0] ** t) * own["m"] / root

@torch.no_grad()
def lean_adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is not None:
            if i not in state:
                state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
            update(p, g, state[i], lr, betas, eps)
"""


@pytest.mark.sandbox
def test_memory_hidden_from_the_meter_is_refused_by_the_kernel() -> None:
    honest = source_of(lean_adam_step, "right_flat_views")
    case = lean_adam_step.cases(np.random.default_rng(0))[-1]
    found = {}
    with Sandbox() as sandbox:
        for source in (honest, _HIDES_FROM_THE_METER):
            with sandbox.open() as student:
                student.run_cell(source)
                answer = student.run(lean_adam_step.probe_path, case.inputs, budget=case.budget)
            found[source] = (answer.memory, _judged(case, answer).earned["under the budget"])
    assert found == {honest: ("within", 2), _HIDES_FROM_THE_METER: ("refused", 0)}


# Optimizer state: the references against torch's own.


def test_bytes_of_state_are_torchs_but_for_its_counters() -> None:
    shapes = [(6, 10), (7,), (3, 4, 5)]
    for name, make in (
        ("sgd", torch.optim.SGD),
        ("momentum", lambda params: torch.optim.SGD(params, momentum=0.9)),
        ("adam", torch.optim.Adam),
        ("adafactor", torch.optim.Adafactor),
    ):
        parameters = [torch.zeros(shape, requires_grad=True) for shape in shapes]
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        optimizer = make(parameters)
        optimizer.step()
        kept = [
            value
            for own in optimizer.state.values()
            for key, value in own.items()
            if torch.is_tensor(value) and key != "step"
        ]
        assert state_bytes_of(shapes, name) == sum(value.nbytes for value in kept), name


def test_the_timeline_of_events_is_that_of_a_real_training() -> None:
    """A model of one operator that saves nothing of its own but its input."""
    events = ["step", *["forward", "backward"] * 2, "step", "zero_grad(set_to_none=True)"]
    events += ["forward", "backward", "zero_grad(set_to_none=False)", "step", "forward"]
    weight = torch.ones(4096, requires_grad=True)
    optimizer = torch.optim.Adam([weight], foreach=False)
    losses, live = [], []
    for event in events:
        if event == "forward":
            saved = torch.ones(4096)
            losses.append((weight * saved).sum())
            del saved
        elif event == "backward":
            losses.pop().backward()
        elif event == "step":
            optimizer.step()
        else:
            optimizer.zero_grad(set_to_none="True" in event)
        kept = [value for own in optimizer.state.values() for value in own.values()]
        gradient = 0 if weight.grad is None else weight.grad.nbytes
        moments = sum(value.nbytes for value in kept if value.numel() > 1)
        live.append(weight.nbytes + gradient + moments + 4 * 4096 * len(losses))
    answer = LocalStudent({"step_timeline": lambda *_: live}).run(
        "peakmem.probes.lab03:step_timeline", {"calls": [[4 * 4096, 4 * 4096, events]]}
    )
    case = Case(("any order",), {"calls": [[4 * 4096, 4 * 4096, events]]})
    assert step_timeline.judge(case, answer)["any order"].ok


def test_the_state_that_is_drawn_for_adam_is_what_torchs_adam_keeps() -> None:
    case = measured_state_bytes.cases(np.random.default_rng(0))[0]
    state = case.inputs["calls"][-1][0]
    parameters = [torch.zeros(n, requires_grad=True) for n in state["parameters"]]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.Adam(parameters)
    optimizer.step()
    kept = optimizer.state.values()
    sizes = [[(key, value.numel()) for key, value in own.items()] for own in kept]
    drawn = [[(key, view["stop"]) for key, view in tree.items()] for tree in state["trees"]]
    assert sizes == drawn


def test_the_measured_peaks_of_eight_equal_tensors_are_the_published_ones() -> None:
    shapes = [(64, 64)] * 8
    parameter_bytes = 4 * 64 * 64 * 8
    found = {name: measured_peak(shapes, 0, name) for name in ("for-loop", "foreach", "fused")}
    in_parameters = {name: peak / parameter_bytes for name, (peak, _) in found.items()}
    assert in_parameters == {"for-loop": 4.375, "foreach": 5.0, "fused": 4.0}
    assert measured_peak(shapes, parameter_bytes, "fused") == (5 * parameter_bytes, "backward")
