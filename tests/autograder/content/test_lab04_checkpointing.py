"""Lab 4: the bank's answers, oracles of the references, and judges on plain figures."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.content.lab04 import LAB
from autograder.content.lab04.attention import recompute_attention_only
from autograder.content.lab04.chains import (
    Chain,
    best_plan,
    equal_segments,
    in_library,
    least_budget,
    peak,
    time,
)
from autograder.content.lab04.checkpoint import _expected_sums, checkpoint
from autograder.content.lab04.forbidden import NO_TORCH_CHECKPOINT
from autograder.content.lab04.gpu_tradeoff import gpu_tradeoff
from autograder.content.lab04.heuristics import HEURISTICS, draw_chain
from autograder.content.lab04.plan import plan as plan_task
from autograder.content.lab04.saved import SAVED, saved_bytes
from autograder.content.lab04.segments import run_in_segments
from autograder.content.lab04.sqrt_rule import peak_by_formula, sqrt_rule
from autograder.model.judge import judge
from autograder.model.task import NOT_WRITTEN, Answer, Case, Task, Verdict
from autograder.sandbox.host.in_process import LocalStudent
from autograder.sandbox.host.sandbox import Sandbox
from peakmem.plan import kept_set_optimal, optimal
from peakmem.plan.simulator import simulate
from peakmem.probes import Namespace, lab04
from peakmem.probes.lab04 import segments
from tests.answers import answer, mistakes_shown
from tests.autograder.content.bank_in_process import check_bank
from tests.autograder.uses import names_used

MIB = 2**20


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_bank(task: Task) -> None:
    check_bank(LAB, task)


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_every_mistake_stands_in_the_bank(task: Task) -> None:
    assert set(task.mistakes) <= mistakes_shown(task)


def _source(task: str, name: str) -> str:
    return answer(LAB.name, f"lab04-{task}/{name}").source


def _case(task: Task, part: str, **inputs: Any) -> Case:
    """The first case that decides this part and has these inputs."""
    for case in task.cases(np.random.default_rng(0)):
        if part in case.parts and inputs.items() <= dict(case.inputs).items():
            return case
    raise LookupError(part)


def _judged(task: Task, case: Case, value: Any, memory: Any = "") -> Verdict:
    return judge(task, [case], [Answer(value, memory=memory)])


# saved_bytes: the table against a walk over torch's own graph


def _walked(fn: Any, *inputs: torch.Tensor) -> int:
    names: dict[str, Any] = {}
    exec(_source("saved_bytes", "right_graph_walk"), names)
    found: int = names["saved_bytes"](fn, *inputs)
    return found


@pytest.mark.parametrize("name", SAVED)
def test_the_table_of_saved_bytes_is_what_torchs_graph_holds(name: str) -> None:
    found = lab04.saved_bytes(Namespace({"saved_bytes": _walked}), [[name, 11, 7]])
    case = Case(("value",), {"calls": [[name, 11, 7]]})
    assert saved_bytes.judge(case, Answer(found))["value"].ok, found


# sqrt_rule


def peak_by_simulation(n: int, k: int, saved: int = 1) -> int:
    """The peak of a run simulated unit by unit, in outputs of a layer.

    A unit is (layer, number); number 0 is the layer's output, and (-1, 0) is the chain's input.
    """

    def all_of(first: int, end: int) -> set[tuple[int, int]]:
        return set(itertools.product(range(first, end), range(saved)))

    bounds = [*range(0, n, k), n]
    live = {(start - 1, 0) for start in bounds[:-1]} | all_of(bounds[-2], n)
    peak = len(live)
    live -= all_of(bounds[-2], n)
    for start, end in reversed(list(itertools.pairwise(bounds))[:-1]):
        live.discard((end - 1, 0))  # the segment after it is done, its input with it
        peak = max(peak, len(live | all_of(start, end)))
    return peak


@given(st.integers(1, 80), st.integers(1, 90), st.integers(1, 4))
def test_the_formula_of_the_peak_is_the_chain_run(n: int, k: int, saved: int) -> None:
    assert peak_by_formula(n, k, saved) == peak_by_simulation(n, min(k, n), saved)


def test_the_root_rounded_down_is_not_best_for_the_hidden_lengths() -> None:
    for n in (8, 15, 24):
        least = min(peak_by_simulation(n, k) for k in range(1, n + 1))
        assert peak_by_simulation(n, math.isqrt(n)) > least


@pytest.mark.parametrize(("n", "k"), [(12, 3), (12, 4), (10, 4), (16, 4), (8, 8)])
def test_a_measured_peak_is_the_predicted_one_and_gradients(n: int, k: int) -> None:
    """With torch's own checkpoints: a chain of tanh holds one to three gradients on top."""
    gradients = _measured_peak(n, k) - (peak_by_simulation(n, k) - 1)  # the input was there before
    assert 1 <= gradients <= 3.2


def _measured_peak(n: int, k: int) -> float:
    from torch.utils.checkpoint import checkpoint as torchs

    from peakmem.measure.meter import MemoryMeter

    x = torch.randn(256, 256, requires_grad=True)

    def run(y: torch.Tensor, first: int) -> torch.Tensor:
        for _ in range(first, min(first + k, n)):
            y = torch.tanh(y)
        return y

    with MemoryMeter("cpu").track(x) as meter:
        y = x
        last = (math.ceil(n / k) - 1) * k
        for first in range(0, last, k):
            y = torchs(run, y, first, use_reentrant=False)
        run(y, last).sum().backward()
    return (meter.peak_bytes - meter.baseline_bytes) / x.nbytes


# plan: exhaustive search as the oracle of the library's planner


def _exhaustive(chain: Chain, budget: int) -> int | None:
    n = len(chain)
    sets = itertools.chain.from_iterable(itertools.combinations(range(n), m) for m in range(n + 1))
    times = [time(chain, kept) for kept in sets if peak(chain, kept) <= budget]
    return min(times, default=None)


@pytest.mark.parametrize("seed", range(12))
def test_the_reference_plan_is_that_of_exhaustive_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = draw_chain(rng, int(rng.integers(1, 10)))
    for budget in {peak(chain, kept) + d for kept in ([], [0]) for d in (-1, 0)} | {300, 500}:
        found = best_plan(chain, budget)
        least = _exhaustive(chain, budget)
        assert (found is None) == (least is None)
        if found is not None:
            assert peak(chain, found) <= budget
            assert time(chain, found) == least
    lowest = least_budget(chain)
    assert _exhaustive(chain, lowest) is not None
    assert _exhaustive(chain, lowest - 1) is None


def test_the_peak_and_the_time_of_a_plan_are_worked_out_by_hand() -> None:
    chain = Chain([1, 10, 100, 1000], [4, 5, 6, 7], [1, 2, 3, 4])
    assert (peak(chain, []), time(chain, [])) == (22, 1111)
    assert (peak(chain, [0, 2]), time(chain, [0, 2])) == (12, 1222)  # 4; 1 + 11; 1 + 3 + 7
    assert (peak(chain, [3]), time(chain, [3])) == (22, 2222)


TABLE = Chain(*zip(*lab04.UNEQUAL_STAGES, strict=True))


def _from(steps: Any, budget: int) -> float:
    """The time that a table of (budget, time) gives for a budget; inf below its first."""
    return min((took for start, took in steps if start <= budget), default=math.inf)


def test_the_tables_shown_are_the_planners_times() -> None:
    for budget in range(240, 1170, 30):
        kept = best_plan(TABLE, budget)
        own = math.inf if kept is None else time(TABLE, kept)
        assert _from(lab04.KEPT_SET_OPTIMUM, budget) == own
        assert _from(lab04.NESTED_OPTIMUM, budget) == _makespan(optimal, budget, slots=1200)


@pytest.mark.parametrize(
    ("planner", "steps"),
    [(kept_set_optimal, lab04.KEPT_SET_OPTIMUM), (optimal, lab04.NESTED_OPTIMUM)],
)
def test_every_step_of_the_tables_is_where_the_time_changes(planner: Any, steps: Any) -> None:
    options = {"slots": 1200} if planner is optimal else {}
    for budget, took in random.Random(0).sample(steps, 5):
        assert _makespan(planner, budget, **options) == took
        assert _makespan(planner, budget - 1, **options) > took


def _makespan(planner: Any, budget: int, **options: int) -> float:
    chain = in_library(TABLE)
    try:
        return float(simulate(chain, planner(chain, budget, **options)).makespan)
    except ValueError:  # Infeasible
        return math.inf


def test_the_figures_in_the_text_about_the_chain() -> None:
    assert sum(TABLE.saved) == 1158
    assert sum(TABLE.times) == 114
    assert (peak(TABLE, [3, 7, 11]), time(TABLE, [3, 7, 11])) == (592, 202)
    equal = equal_segments(TABLE, 592)
    assert equal is not None
    assert time(TABLE, equal) == 202
    assert best_plan(TABLE, 592) == [3]
    assert time(TABLE, [3]) == 142


@pytest.mark.parametrize("seed", range(8))
def test_every_rule_of_thumb_loses_two_parts_in_every_draw(seed: int) -> None:
    cases = plan_task.cases(np.random.default_rng(seed))
    for name in HEURISTICS:
        planned = [[_planned(name, call) for call in case.inputs["calls"]] for case in cases]
        verdict = judge(plan_task, cases, [Answer(outcomes) for outcomes in planned])
        assert verdict.points <= 2, name
        assert verdict.earned["within 1.2 of the least time"] == 0, name


def _planned(name: str, call: list[Any]) -> tuple[Any, ...]:
    kept = HEURISTICS[name](Chain(*call[:3]), call[3])
    return ("raised", "ValueError", "") if kept is None else ("value", kept)


def test_plans_that_are_all_wrong_earn_nothing() -> None:
    cases = plan_task.cases(np.random.default_rng(0))
    for outcome in (("raised", "NotImplementedError", ""), ("value", None), ("changed", 0)):
        answers = [Answer([outcome] * len(case.inputs["calls"])) for case in cases]
        assert judge(plan_task, cases, answers).points == 0


@pytest.mark.parametrize("value", [None, [], 3, [("value", "x")], [("value", [1, 1])] * 7])
def test_forged_plans_earn_nothing(value: Any) -> None:
    case = plan_task.cases(np.random.default_rng(0))[-1]
    assert not any(finding.ok for finding in plan_task.judge(case, Answer(value)).values())


# checkpoint: the judge on figures, and a process watched from outside

RIGHT_MEMORY = {
    "kept_bytes": 8192,
    "numpy_bytes": 50_000,
    "rise_bytes": 3 * MIB,
    "calls": [1, 2],
    "operators": [lab04.TANHS, lab04.TANHS],
}


def _memory(changes: Mapping[str, Any]) -> Verdict:
    case = _case(checkpoint, "kept bytes and calls", kind="memory")
    right = {**RIGHT_MEMORY, "sums": _expected_sums(case.inputs["seed"])}
    return _judged(checkpoint, case, {**right, **changes})


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        ({"kept_bytes": 8193}, "keeps_something"),
        ({"kept_bytes": 12 * MIB}, "keeps_everything"),
        ({"numpy_bytes": 11 * MIB}, "keeps_something"),
        ({"calls": [1, 1]}, "keeps_everything"),
        ({"calls": [2, 3]}, "calls"),
        ({"calls": [1, 13]}, "calls"),
        ({"sums": []}, "no_graph_in_backward"),
        ({"sums": [np.full(320, np.nan)] * 4}, None),
    ],
)
def test_kept_bytes_are_judged_to_the_byte(changes: dict[str, Any], mistake: str | None) -> None:
    assert _memory({}).earned["kept bytes and calls"] == 2
    verdict = _memory(changes)
    assert (verdict.earned["kept bytes and calls"], verdict.mistake) == (0, mistake)


@pytest.mark.parametrize(
    "changes",
    [
        {"kept_bytes": -1},
        {"rise_bytes": 0},
        {"operators": [0, 0]},
        {"operators": [lab04.TANHS, 0]},
        {"operators": None},
    ],
    ids=str,
)
def test_less_than_a_checkpoint_takes_is_doubted(changes: dict[str, Any]) -> None:
    assert _memory(changes).status == "could_not_judge"


_POOL = """
from concurrent.futures import ThreadPoolExecutor


def {name}(*given):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(inner, *given).result()
"""


@pytest.mark.parametrize(
    ("task", "answer", "name", "part"),
    [
        (checkpoint, "right_hooks", "checkpoint", "kept bytes and calls"),
        (run_in_segments, "right_recursion", "run_in_segments", "value"),
        (recompute_attention_only, "right_hooks", "recompute_attention_only", "kept bytes"),
        (
            recompute_attention_only,
            "wrong_nothing_recomputed",
            "recompute_attention_only",
            "kept bytes",
        ),
    ],
)
def test_work_on_another_thread_is_doubted(task: Task, answer: str, name: str, part: str) -> None:
    names: dict[str, Any] = {}
    source = _source(task.name, answer)
    exec(source, names)
    names["inner"] = names[name]
    exec(_POOL.replace("{name}", name), names)
    case = _case(task, part, **({"kind": "memory"} if task is checkpoint else {}))
    answer_ = LocalStudent(names).run(task.probe_path, case.inputs, lambda _: None)
    assert task.judge(case, answer_)[part].doubt


# Saves everything outside of tensors, and calls a second softmax for the count alone.
_SAVED_BESIDE = """
import torch
def recompute_attention_only(block, x):
    torch.softmax(torch.zeros(1, 1), 0)
    with torch.autograd.graph.saved_tensors_hooks(PACK, UNPACK):
        a = x + block.attention(block.norm1(x))
    return a + block.mlp(block.norm2(a))
"""
_IN_ARRAYS = ("lambda t: t.detach().numpy().copy()", "torch.from_numpy")
_IN_BYTES = (
    "lambda t: (t.detach().numpy().tobytes(), t.dtype, t.shape)",
    "lambda kept: torch.frombuffer(bytearray(kept[0]), dtype=kept[1]).view(kept[2])",
)


@pytest.mark.parametrize(("pack", "unpack"), [_IN_ARRAYS, _IN_BYTES], ids=["arrays", "bytes"])
def test_what_attention_saves_counts_outside_of_tensors_too(pack: str, unpack: str) -> None:
    names: dict[str, Any] = {}
    exec(_SAVED_BESIDE.replace("UNPACK", unpack).replace("PACK", pack), names)
    case = _case(recompute_attention_only, "kept bytes")
    answer = LocalStudent(names).run(recompute_attention_only.probe_path, case.inputs)
    found = recompute_attention_only.judge(case, answer)
    assert not found["kept bytes"].ok
    assert not found["recomputed operations"].ok
    assert "still saved" in found["recomputed operations"].said


@pytest.mark.parametrize(
    "changes",
    [
        {"softmax": 0, "gelu": 0, "addmm": 0, "kept_bytes": 0},
        {"softmax": 2, "gelu": 1, "addmm": 6, "kept_bytes": 0},
        {"softmax": 2, "gelu": 0, "addmm": 6},
        {"softmax": 2, "gelu": 1, "addmm": 3},
    ],
    ids=str,
)
def test_counts_below_what_a_block_takes_are_doubted(changes: dict[str, int]) -> None:
    case = _case(recompute_attention_only, "kept bytes")
    student = LocalStudent(_names("recompute_attention", "right_own_checkpoint"))
    value = student.run(recompute_attention_only.probe_path, case.inputs).value
    assert _judged(recompute_attention_only, case, value).status == "right"
    found = recompute_attention_only.judge(case, Answer({**value, **changes}))
    assert found["kept bytes"].doubt


@pytest.mark.parametrize(
    ("changes", "doubted"),
    [({"kept_bytes": 0}, True), ({"operators": [0, 0]}, True), ({"forward": []}, False)],
    ids=str,
)
def test_segments_that_the_meter_did_not_see_earn_nothing(
    changes: dict[str, Any], doubted: bool
) -> None:
    case = _case(run_in_segments, "value")
    student = LocalStudent(_names("run_in_segments", "right_indices"))
    value = student.run(run_in_segments.probe_path, case.inputs).value
    assert run_in_segments.judge(case, Answer(value))["value"].ok
    found = run_in_segments.judge(case, Answer({**value, **changes}))["value"]
    assert not found.ok
    assert bool(found.doubt) == doubted


def test_the_layers_hold_no_list_of_their_calls() -> None:
    layers, read_calls = segments._noting_layers(2, 3)
    layers[1](torch.ones(1, 3))
    assert read_calls() == [1]
    assert not [value for layer in layers for value in vars(layer).values() if value == [1]]


def _names(task: str, answer: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(_source(task, answer), names)
    return names


BUDGETED = {"checkpoint": "right_hooks", "run_in_segments": "right_recursion"}


def _under_budget(task: Task) -> tuple[Case, dict[str, Any]]:
    """The measured case of a task, and a right answer's result for it."""
    case = next(c for c in task.cases(np.random.default_rng(2)) if c.budget is not None)
    names = _names(task.name, BUDGETED[task.name])
    answer = LocalStudent(names).run(task.probe_path, case.inputs)
    assert answer.raised is None
    return case, answer.value


@pytest.mark.parametrize("task", [checkpoint, run_in_segments], ids=lambda task: task.id)
def test_the_kernels_word_counts_and_the_meters_only_without_it(task: Task) -> None:
    case, value = _under_budget(task)
    (part,) = case.parts
    above = {**value, "rise_bytes": value["rise_bytes"] + 64 * MIB}
    right = {
        (memory, metered is above)
        for memory in ("", "within", "refused")
        for metered in (value, above)
        if _judged(task, case, metered, memory).earned[part]
    }
    assert right == {("", False), ("within", False), ("within", True)}


@pytest.mark.parametrize("task", [checkpoint, run_in_segments], ids=lambda task: task.id)
def test_the_result_of_the_measured_call_is_judged(task: Task) -> None:
    case, value = _under_budget(task)
    (part,) = case.parts
    for sums in ([], [np.zeros_like(s) for s in value["sums"]], value["sums"][:-1], None):
        assert not _judged(task, case, {**value, "sums": sums}, "within").earned[part]


_HIDES_FROM_THE_METER = """
import mmap

hidden = []


def checkpoint(fn, *args):
    out = inner(fn, *args)
    hidden.append(mmap.mmap(-1, 8 * 2**20, flags=mmap.MAP_PRIVATE))  # what the graph would keep
    return out
"""


@pytest.mark.sandbox
def test_memory_hidden_from_the_meter_is_refused_by_the_kernel() -> None:
    honest = _source("checkpoint", "right_hooks")
    cheat = honest.replace("def checkpoint(", "def inner(") + _HIDES_FROM_THE_METER
    case, _ = _under_budget(checkpoint)
    found = []
    with Sandbox() as sandbox:
        for source in (honest, cheat):
            with sandbox.open() as student:
                student.run_cell(source)
                answer = student.run(checkpoint.probe_path, case.inputs, budget=case.budget)
            earned = judge(checkpoint, [case], [answer]).earned["kept bytes and calls"]
            found.append((answer.memory, earned))
    assert found == [("within", 2), ("refused", 0)]


def _raising(*_: Any) -> Any:
    raise NotImplementedError


@pytest.mark.parametrize("task", [t for t in LAB.tasks if not t.needs_gpu], ids=lambda t: t.id)
def test_what_is_not_written_earns_nothing_and_is_told_so(task: Task) -> None:
    student = LocalStudent(dict.fromkeys(task.defines, _raising))
    cases = task.cases(np.random.default_rng(0))
    verdict = judge(task, cases, [student.run(task.probe_path, case.inputs) for case in cases])
    assert (verdict.points, verdict.message) == (0, NOT_WRITTEN.said)


@pytest.mark.parametrize("task", [checkpoint, run_in_segments, recompute_attention_only, sqrt_rule])
@pytest.mark.parametrize("value", [None, [], {}, "x", {"kept_bytes": 0}])
def test_garbled_answers_are_wrong_and_break_nothing(task: Task, value: Any) -> None:
    for case in task.cases(np.random.default_rng(0)):
        assert not any(finding.ok for finding in task.judge(case, Answer(value)).values())


# Forbidden tools in solutions.


@pytest.mark.parametrize(
    "source",
    [
        "from torch.utils.checkpoint import checkpoint as c\ndef checkpoint(f, a): return c(f, a)",
        "import torch.utils.checkpoint as c\ndef checkpoint(f, *a): return c.checkpoint(f, *a)",
        "import torch\ndef checkpoint(f, *a): return torch.utils.checkpoint.checkpoint(f, *a)",
        "from torch.utils import checkpoint as c\ndef checkpoint(f, a): return c.checkpoint(f, a)",
        "import importlib\ndef checkpoint(f, *a):\n"
        "    return importlib.import_module('torch.utils.checkpoint').checkpoint(f, *a)",
    ],
)
def test_torchs_checkpoint_is_banned_by_every_plain_route(source: str) -> None:
    assert names_used(NO_TORCH_CHECKPOINT, ("checkpoint",), [source])


def test_own_names_are_not_banned() -> None:
    source = "def checkpoint(f): return f\ndef run_in_segments(a): return checkpoint(a)"
    assert not names_used(NO_TORCH_CHECKPOINT, ("checkpoint", "run_in_segments"), [source])


# gpu_tradeoff: the judge on figures as a large GPU gives them

OWN = [(0.50, 16.0e9), (0.58, 9.5e9), (0.62, 6.4e9), (0.66, 5.6e9)]


def _gpu(student: Any, own: Any = OWN) -> Verdict:
    case = gpu_tradeoff.cases(np.random.default_rng(0))[0]
    return _judged(gpu_tradeoff, case, {"own": own, "student": student})


def _scaled(seconds: float = 1.0, peak_bytes: float = 1.0) -> list[tuple[float, float]]:
    return [(s * seconds, p * peak_bytes) for s, p in OWN]


@pytest.mark.parametrize(("seconds", "peak_bytes"), [(1, 1), (0.8, 1.1), (1.3, 0.9)])
def test_figures_near_the_gpus_own_are_right(seconds: float, peak_bytes: float) -> None:
    assert _gpu(_scaled(seconds, peak_bytes)).status == "right"


@pytest.mark.parametrize(
    ("mistake", "student"),
    [
        ("not_synchronized", _scaled(0.05)),
        ("milliseconds", _scaled(1000)),
        ("gibibytes", _scaled(peak_bytes=2**-30)),
        ("no_checkpoint", [OWN[0]] * 4),
        ("peak_not_reset", [(s, OWN[0][1]) for s, _ in OWN]),
        ("live_after", [(s, 0.9e9) for s, _ in OWN]),
        ("first_step_too", _scaled(3.0)),
    ],
)
def test_each_mistake_of_measuring_is_recognised(mistake: str, student: Any) -> None:
    verdict = _gpu(student)
    assert (verdict.points, verdict.mistake) == (0, mistake)


@pytest.mark.parametrize(
    "student", [None, [], OWN[:3], [(1.0, math.nan)] * 4, [1, 2, 3, 4], [(True, 1.0)] * 4]
)
def test_figures_of_another_kind_are_wrong(student: Any) -> None:
    assert _gpu(student).status == "wrong"


@pytest.mark.parametrize("own", [None, OWN[::-1], [(0.5, 16e9)] + [(0.9, 9e9)] * 3])
def test_own_figures_that_cannot_be_true_are_not_judged(own: Any) -> None:
    verdict = _gpu(OWN, own)
    assert (verdict.status, verdict.points) == ("could_not_judge", 0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_the_gpus_probe_refuses_without_a_gpu() -> None:
    with pytest.raises(RuntimeError, match="torch finds none here; run it on a machine that has"):
        lab04.gpu_tradeoff(Namespace({"measure": lambda k: (1.0, 1)}), [16])
