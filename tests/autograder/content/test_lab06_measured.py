"""Lab 6's measured exercises: each bound, and answers that hide memory."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from autograder.content.lab03.adam import torch_paths
from autograder.content.lab03.lean_adam_step import watched_model
from autograder.content.lab06 import LAB
from autograder.content.lab06.adam import offloaded_adam
from autograder.content.lab06.gpu_overlap import gpu_overlap
from autograder.content.lab06.saved import saved_by, swap_saved_tensors
from autograder.content.lab06.stream import stream_forward
from autograder.model.judge import judge, judge_answer
from autograder.model.task import Answer, Case, Finding, Task
from autograder.sandbox.host.sandbox import Sandbox
from peakmem.probes.lab03 import large_tensors
from peakmem.probes.lab06 import PROGRAMS, run_program
from peakmem.probes.lab06.programs import _Memory
from tests.autograder.uses import names_used

MIB = 2**20


def _measured_case(task: Task) -> Case:
    return next(case for case in task.cases(np.random.default_rng(0)) if case.budget is not None)


def _adam_answer(case: Case) -> dict[str, Any]:
    large = case.inputs["large"]
    (path,) = torch_paths([watched_model(large)], case.inputs["options"])
    state_bytes = 8 * sum(n for (n,) in large["shapes"])
    rows = [np.stack(values).astype(np.float32) for values in zip(*path, strict=True)]
    return {
        "models": [{"parameters": rows, "changed": None, "state_used": True}],
        "live_bytes": [0, state_bytes, state_bytes],
        "rise_bytes": 16 * max(n for (n,) in large["shapes"]),
        "numpy_rise_bytes": 0,
        "kept_bytes": 0,
        "cleared": True,
    }


def _stream_answer(case: Case) -> dict[str, Any]:
    value = 1.0
    for filling in case.inputs["fillings"]:
        value = math.tanh(filling * value)
    layer_bytes = 4 * case.inputs["width"] ** 2
    return {
        "rise_bytes": 2 * layer_bytes,
        "requires_grad": False,
        "loads": list(range(10)),
        "corners": [value] * 2,
    }


def _saved_answer(case: Case) -> dict[str, Any]:
    rows = case.inputs["rows"]
    weights = [torch.eye(64, requires_grad=True) for _ in range(12)]
    y = torch.ones(rows, 64)
    for weight in weights:
        y = torch.tanh(y @ weight)
    y.sum().backward()  # type: ignore[no-untyped-call]
    corners = [[w.grad[0, 0].item(), w.grad[-1, -1].item()] for w in weights if w.grad is not None]
    return {
        "rise_bytes": 6 * 256 * rows,
        "bytes_out": 13 * 256 * rows,
        "live_bytes": 0,
        "corners": corners,
    }


# For each exercise its part that is measured, and what makes an honest answer to the case.
MEASURED: dict[str, tuple[Task, str, Callable[[Case], dict[str, Any]]]] = {
    "adam": (offloaded_adam, "device bytes during step", _adam_answer),
    "stream": (stream_forward, "two layers at most", _stream_answer),
    "saved": (swap_saved_tensors, "device peak under the budget", _saved_answer),
}


@cache
def _honest(name: str) -> tuple[Case, dict[str, Any]]:
    task, _, make = MEASURED[name]
    case = _measured_case(task)
    return case, make(case)


def _judged(name: str, memory: Any = "", doubt: str = "", **changes: Any) -> Mapping[str, Finding]:
    case, honest = _honest(name)
    answer = Answer(honest | changes, memory=memory, doubt=doubt)
    return judge_answer(MEASURED[name][0], case, answer)


def _finding(name: str, memory: Any = "", doubt: str = "", **changes: Any) -> Finding:
    return _judged(name, memory, doubt, **changes)[MEASURED[name][1]]


def _rise(name: str) -> int:
    rise: int = _honest(name)[1]["rise_bytes"]
    return rise


@pytest.mark.parametrize("name", MEASURED)
def test_the_kernels_word_counts_and_the_meters_only_without_it(name: str) -> None:
    above = _rise(name) + MIB
    assert _finding(name, "within").ok
    assert _finding(name, "within", rise_bytes=above).ok
    refused = _finding(name, "refused", rise_bytes=above)
    assert not refused.ok
    assert refused.mistakes
    assert not _finding(name, "refused").ok
    assert _finding(name).ok
    assert not _finding(name, rise_bytes=above).ok


@pytest.mark.parametrize("name", MEASURED)
def test_a_doubt_takes_what_is_right_and_leaves_what_is_wrong(name: str) -> None:
    doubted = _finding(name, "within", doubt="why")
    assert (doubted.ok, doubted.doubt) == (False, "why")
    assert not _finding(name, "refused", doubt="why").doubt


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("rise_bytes", [None, "0", 0.0, [1], True, np.float64(3)])
def test_garbled_figures_are_wrong_and_break_nothing(name: str, rise_bytes: object) -> None:
    assert not _finding(name, rise_bytes=rise_bytes).ok


@pytest.mark.parametrize("name", MEASURED)
def test_the_budget_is_the_bound_and_what_the_probe_itself_takes(name: str) -> None:
    case, _ = _honest(name)
    inputs = case.inputs
    given = {
        "adam": lambda: 8 * sum(n for (n,) in inputs["large"]["shapes"]),
        "stream": lambda: 0,
        "saved": lambda: 256 * inputs["rows"],
    }[name]()
    assert case.budget is not None
    assert 1.5 * MIB <= case.budget.bytes - given - _rise(name) <= 2.3 * MIB
    # Less than the next mistake's excess: a layer, two activations, the other moments.
    more = {
        "adam": lambda: 8 * sum(n for (n,) in inputs["large"]["shapes"]) - _rise("adam"),
        "stream": lambda: 4 * inputs["width"] ** 2,
        "saved": lambda: 6 * 256 * inputs["rows"],
    }[name]()
    assert more > 3 * MIB


def test_adam_counts_numpy_what_is_kept_and_what_zero_grad_leaves() -> None:
    state_bytes = _honest("adam")[1]["live_bytes"][1]
    assert _finding("adam", numpy_rise_bytes=MIB).mistakes == ("temporaries",)
    assert _finding("adam", numpy_rise_bytes=state_bytes).mistakes == ("all_moments_at_once",)
    assert _finding("adam", kept_bytes=MIB).mistakes == ("keeps_on_the_device",)
    assert _finding("adam", "refused", kept_bytes=MIB).mistakes == ("keeps_on_the_device",)
    assert _finding("adam", cleared=False).mistakes == ("zero_grad_does_nothing",)


def test_adam_keeps_nothing_between_steps_even_where_the_kernel_has_room() -> None:
    cases = offloaded_adam.cases(np.random.default_rng(0))
    case = next(case for case in cases if case.inputs.get("large", {}).get("even"))
    large = case.inputs["large"]
    model = {**watched_model(large, large_tensors(large["shapes"], large["seed"], even=True))}
    (path,) = torch_paths([model | {"skipped": large["skipped"]}], case.inputs["options"])
    rows = [np.stack(values).astype(np.float32) for values in zip(*path, strict=True)]
    sizes = [n for (n,) in large["shapes"]]
    first = 8 * (sizes[0] + sizes[2] + sizes[4])  # the second gradient comes late, the fourth never
    right = {
        "models": [{"parameters": rows, "changed": None, "state_used": True}],
        "live_bytes": [0, first, first + 8 * sizes[1]],
        "rise_bytes": MIB,
        "numpy_rise_bytes": MIB,
        "kept_bytes": 0,
        "numpy_kept_bytes": 0,
        "spread": 0.0,
        "cleared": True,
    }

    def found(**changes: Any) -> list[tuple[bool, tuple[str, ...]]]:
        both = judge_answer(offloaded_adam, case, Answer(right | changes)).values()
        return [(finding.ok, finding.mistakes) for finding in both]

    passes = (True, ())
    assert found() == [passes, passes]
    kept = (False, ("keeps_on_the_device",))
    assert found(kept_bytes=MIB // 8) == found(numpy_kept_bytes=MIB // 8) == [kept, passes]
    everywhere = [0, 8 * sum(sizes), 8 * sum(sizes)]
    assert found(live_bytes=everywhere) == [passes, (False, ("made_without_gradient",))]
    assert not any(ok for ok, _ in found(spread=0.1))


def test_adam_has_to_make_the_measured_steps_as_it_makes_the_small_ones() -> None:
    (model,) = _honest("adam")[1]["models"]
    for rows in (
        [np.zeros_like(row) for row in model["parameters"]],
        [row * 1.001 for row in model["parameters"]],
    ):
        found = _judged("adam", "within", models=[{**model, "parameters": rows}])
        assert not any(finding.ok for finding in found.values())
    uphill = watched_model(_honest("adam")[0].inputs["large"])["parameters"]
    pairs = zip(uphill, model["parameters"], strict=True)
    mirrored = [(2 * start - row).astype(np.float32) for start, row in pairs]
    # A mistake that the other part takes points for costs none here.
    assert _judged("adam", "within", models=[{**model, "parameters": mirrored}])[
        "device bytes during step"
    ].ok


@pytest.mark.parametrize(
    ("states", "mistake"),
    [
        ([1, 1, 1], "made_too_early"),
        ([0, 1, 2], "puts_again"),
        ([0, 0, 0], "nothing_on_the_host"),
        ([0, 1.5, 1.5], "gradients_too"),
    ],
)
def test_adam_bytes_on_the_host(states: list[float], mistake: str) -> None:
    state_bytes = _honest("adam")[1]["live_bytes"][1]
    live_bytes = [int(share * state_bytes) for share in states]
    finding = _judged("adam", "within", live_bytes=live_bytes)["bytes on the host"]
    assert not finding.ok
    assert mistake in finding.mistakes


def test_streaming_needs_every_layer_in_a_run_of_few_bytes() -> None:
    assert _finding("stream", loads=[0]).mistakes == ("first_layer_only",)
    assert _finding("stream", loads=list(range(9))).mistakes == ("last_layer_left_out",)
    assert not _finding("stream", loads="0123456789").ok
    layer_bytes = _rise("stream") // 2
    for memory in ("", "refused"):
        rises = {count: count * layer_bytes for count in (3, 10)}
        assert _finding("stream", memory, rise_bytes=rises[3]).mistakes == ("three_at_once",)
        assert _finding("stream", memory, rise_bytes=rises[10]).mistakes == ("all_layers_at_once",)


def test_streaming_judges_the_output_of_the_measured_call() -> None:
    right = _honest("stream")[1]["corners"]
    assert _finding("stream", "within", requires_grad=True).mistakes == ("graph_recorded",)
    for corners in ([0.5, 0.5], [math.nan] * 2, right[:1], [right[0], 0.5], "right"):
        assert not _finding("stream", "within", corners=corners).ok
    chain = [math.tanh(filling) for filling in _honest("stream")[0].inputs["fillings"]]
    assert _finding("stream", "within", corners=[sum(chain)] * 2).ok  # the other part's business


def test_swapping_judges_the_gradients_of_the_measured_call() -> None:
    right = _honest("saved")[1]["corners"]
    wrong = [[pair[0], math.nan] for pair in right]
    for corners in (wrong, right[:-1], [[0.0, 0.0]] * 12, []):
        assert not _finding("saved", "within", corners=corners).ok
    few = _finding("saved", "within", corners=[[0.0, 0.0]] * 12, bytes_out=12 * _rise("saved") // 6)
    assert few.mistakes == ("address_as_identity",)


def test_a_low_peak_without_bytes_on_the_host_is_doubted() -> None:
    assert _finding("saved", "within", bytes_out=_rise("saved") // 2).doubt


def test_what_a_program_saves_is_counted_by_hand() -> None:
    # Three times: y saved by the products and by sigmoid or tanh, each tanh, and the weight.
    saved, gradients = saved_by("twice", 0)
    y, weight = 30 * 12 * 8, 12 * 12 * 8
    # y of sigmoid and of the first two rounds, three tanh, and the last y, which y * y saves.
    assert saved.once == 7 * y
    assert saved.parameters_once == weight
    assert saved.parameters_each == 3 * weight
    assert [g.shape for g in gradients] == [(30, 12), (12, 12)]


@contextmanager
def _by_address(saved: list[tuple[int, weakref.ref[torch.UntypedStorage]]]) -> Iterator[None]:
    """Note the address of each storage that autograd saves, and keep only a copy of the tensor."""

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage not in (earlier() for _, earlier in saved):
            saved.append((storage.data_ptr(), weakref.ref(storage)))
        return tensor.clone()

    saved.clear()  # of an earlier block
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield


# `within` frees a first forward's memory before the second one.
@pytest.mark.parametrize("program", sorted(PROGRAMS.keys() - {"within"}))
def test_memory_is_used_again_in_one_program_and_in_no_other(program: str) -> None:
    saved: list[tuple[int, weakref.ref[torch.UntypedStorage]]] = []
    run_program(program, 0, lambda host: _by_address(saved))
    addresses = [address for address, _ in saved if address]  # an empty storage has none
    assert len(addresses) >= 3
    if program == "reused":
        assert len(set(addresses)) == 1
    else:
        assert len(set(addresses)) == len(addresses)


def test_memory_that_is_still_held_is_not_used_again() -> None:
    saved, gradients = saved_by("reused", 0)  # it holds every storage
    run = run_program("reused", 0, lambda host: _by_address([]))
    assert saved.once == saved.each == 12 * 16 * 8 * 8
    assert np.array_equal(run["gradients"][0], gradients[0])


def test_an_id_is_used_again_though_others_were_freed_after_it() -> None:
    """As in the sandbox, where what a solution frees lies above the storage's place."""
    memory, values = _Memory(), np.ones((16, 8))
    tensor = memory.copy_of(values)
    first = id(tensor.untyped_storage())
    others = [torch.zeros(1) for _ in range(5)]
    for other in others:
        other.untyped_storage()  # makes its Python object
    del tensor, other
    others.clear()
    assert id(memory.copy_of(values).untyped_storage()) == first


def test_a_low_peak_is_no_merit_where_what_went_out_does_not_come_back() -> None:
    part = MEASURED["saved"][1]
    case = next(c for c in swap_saved_tensors.cases(np.random.default_rng(0)) if "seed" in c.inputs)
    value = run_program(case.inputs["program"], case.inputs["seed"], lambda host: nullcontext())
    assert swap_saved_tensors.judge(case, Answer(value))[part].ok
    lost = Answer(value | {"gradients": [np.zeros((16, 8))]})
    assert not swap_saved_tensors.judge(case, lost)[part].ok


def test_a_small_program_does_not_tell_that_nothing_is_swapped() -> None:
    cases = swap_saved_tensors.cases(np.random.default_rng(0))
    case = next(c for c in cases if c.inputs.get("program") == "blocks")
    value = run_program("blocks", case.inputs["seed"], lambda host: nullcontext())
    assert judge(swap_saved_tensors, [case], [Answer(value)]).mistake == "others_stay"


_GPU = {"compute": 0.010, "copies": 0.008, "student": 0.0115, "computed": True, "copied": True}


def _overlap(**changes: Any) -> Any:
    return gpu_overlap.judge(Case(("overlap",), {}), Answer(_GPU | changes))["overlap"]


def test_overlap_is_right_up_to_its_ratio_and_recognised_beyond() -> None:
    assert _overlap().ok
    assert _overlap(student=0.0116).mistakes == ()
    assert not _overlap(student=0.0116).ok
    assert _overlap(student=0.018).mistakes == ("one_after_the_other",)
    assert _overlap(computed=False).mistakes == ("compute_left_out",)
    assert _overlap(copied=False).mistakes == ("copies_left_out",)


@pytest.mark.parametrize(
    "changes",
    [{"copies": 1e-9}, {"compute": -1.0}, {"student": float("nan")}, {"copies": 1}, {"compute": 0}],
)
def test_times_that_cannot_be_are_doubted(changes: dict[str, Any]) -> None:
    assert _overlap(**changes).doubt


def test_a_garbled_overlap_is_wrong() -> None:
    assert not _overlap(more=1).ok
    for value in (None, 3, [], {}):
        assert not gpu_overlap.judge(Case(("overlap",), {}), Answer(value))["overlap"].ok


# Answers that hide. They run whatever the ban sees of them, and meet the kernel's budget.

_OFF = """
import torch.utils
names = "_python", "_dispatch", "_disable_current", "_modes"
off = getattr(getattr(torch.utils, "".join(names[:2])), "".join(names[2:]))
"""

_HIDING = {
    "saved, in numpy": """
import torch, numpy as np, weakref
from contextlib import contextmanager
from torch import nn
from peakmem.tiers import whole_storage

@contextmanager
def swap_saved_tensors(host):
    def pack(tensor):
        if isinstance(tensor, nn.Parameter):
            return tensor
        return host.put(tensor), tensor.detach().numpy().copy()
    def unpack(packed):
        return packed if isinstance(packed, torch.Tensor) else torch.from_numpy(packed[1])
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield
""",
    "saved, with modes off": _OFF
    + """
import torch
from contextlib import contextmanager
from torch import nn

@contextmanager
def swap_saved_tensors(host):
    def pack(tensor):
        if isinstance(tensor, nn.Parameter):
            return tensor
        host.put(tensor)
        with off():
            return (tensor.clone(),)
    def unpack(packed):
        return packed if isinstance(packed, torch.Tensor) else packed[0]
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield
""",
    "stream, with modes off": _OFF
    + """
import torch

def stream_forward(host_layers, x):
    with off(), torch.no_grad():
        layers = [layer.load() for layer in host_layers]
        for layer in layers:
            x = layer(x)
    return x
""",
    "adam, with modes off": _OFF
    + """
import torch

class OffloadedAdam:
    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host, self.options = list(params), host, (lr, betas, eps)
        self.state = {}

    def step(self):
        lr, (beta1, beta2), eps = self.options
        with off(), torch.no_grad():
            up = []
            for i, param in enumerate(self.params):
                if param.grad is not None:
                    if i not in self.state:
                        zeros = torch.zeros_like(param)
                        self.state[i] = [0, self.host.put(zeros), self.host.put(zeros)]
                    up.append((param, self.state[i], *map(self.host.get, self.state[i][1:])))
            for param, state, m, v in up:
                state[0] += 1
                m.lerp_(param.grad, 1 - beta1)
                v.lerp_(param.grad**2, 1 - beta2)
                self.host.write(state[1], m)
                self.host.write(state[2], v)
                root = (v / (1 - beta2 ** state[0])).sqrt() + eps
                param -= lr * m / (1 - beta1 ** state[0]) / root

    def zero_grad(self):
        for param in self.params:
            param.grad = None
""",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(LAB.hides) as sandbox:
        yield sandbox


@pytest.mark.sandbox
@pytest.mark.parametrize("name", _HIDING)
def test_bytes_that_the_meter_does_not_see_are_refused_by_the_kernel(
    name: str, sandbox: Sandbox
) -> None:
    task, part, _ = MEASURED[name.partition(",")[0]]
    case = _measured_case(task)
    with sandbox.open() as student:
        student.run_cell(_HIDING[name])
        answer = student.run(task.probe_path, case.inputs, budget=case.budget)
    assert answer.raised is None
    assert answer.memory == "refused"
    assert not judge_answer(task, case, answer)[part].ok
    # The meter alone would have passed it.
    assert judge_answer(task, case, replace(answer, memory=""))[part].ok


@pytest.mark.parametrize("task", [offloaded_adam, stream_forward, swap_saved_tensors])
@pytest.mark.parametrize(
    "line",
    [
        "from torch.utils._python_dispatch import _disable_current_modes as off",
        "off = torch.utils._python_dispatch._disable_current_modes",
        "import ctypes",
        "peakmem.meter._open_meters.clear()",
    ],
)
def test_naming_what_hides_is_refused(task: Task, line: str) -> None:
    name = task.defines[0]
    assert names_used(task.ban, task.defines, [f"def {name}(*args):\n    {line}\n"])
