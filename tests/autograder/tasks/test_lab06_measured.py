"""Lab 6's measured exercises: where each bound lies, and what becomes of answers that hide."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from autograder.ban import banned_uses
from autograder.isolation import missing_layers
from autograder.sandbox import Sandbox
from autograder.task import Answer, Case, Task
from autograder.tasks.lab06 import LAB
from autograder.tasks.lab06.adam import offloaded_adam
from autograder.tasks.lab06.gpu_overlap import gpu_overlap
from autograder.tasks.lab06.outside import NOISE_BYTES
from autograder.tasks.lab06.saved import saved_by, swap_saved_tensors
from autograder.tasks.lab06.stream import stream_forward
from peakmem.probes.lab06 import PROGRAMS, run_program

# For each exercise the case that is measured, its part, and an honest answer to it.
_SIZES, _WIDTH, _ROWS = [400_000] * 5, 700, 5_000
_STATE, _LAYER, _ACTIVATION = 8 * sum(_SIZES), 4 * _WIDTH**2, 256 * _ROWS
MEASURED: dict[str, tuple[Task, str, dict[str, Any], dict[str, Any]]] = {
    "adam": (
        offloaded_adam,
        "device bytes during step",
        {"sizes": _SIZES, "seed": 0},
        {
            "live_bytes": [0, _STATE, _STATE],
            "rise_bytes": 4 * 4 * _SIZES[0],
            "numpy_rise_bytes": 0,
            "kept_bytes": 0,
            "cleared": True,
            "moved": True,
        },
    ),
    "stream": (
        stream_forward,
        "two layers at most",
        {"width": _WIDTH, "count": 10, "rows": 4},
        {"rise_bytes": 2 * _LAYER, "loads": list(range(10))},
    ),
    "saved": (
        swap_saved_tensors,
        "device peak under the budget",
        {"blocks": 12, "rows": _ROWS},
        {"rise_bytes": 6 * _ACTIVATION, "bytes_out": 12 * _ACTIVATION, "live_bytes": 0},
    ),
}


def _judged(
    name: str, resident_bytes: int | None = None, written_bytes: int = 0, **changes: Any
) -> Mapping[str, Any]:
    task, part, inputs, honest = MEASURED[name]
    parts = tuple(task.parts) if name == "adam" else (part,)
    answer = Answer(honest | changes, resident_bytes=resident_bytes, written_bytes=written_bytes)
    return task.judge(Case(parts, inputs), answer)


def _finding(
    name: str, resident_bytes: int | None = None, written_bytes: int = 0, **changes: Any
) -> Any:
    return _judged(name, resident_bytes, written_bytes, **changes)[MEASURED[name][1]]


@pytest.mark.parametrize("name", MEASURED)
def test_an_answer_at_the_bound_is_right_and_above_it_wrong(name: str) -> None:
    at_most = MEASURED[name][3]["rise_bytes"]
    assert _finding(name).ok
    above = _finding(name, rise_bytes=at_most + 2**20)
    assert not above.ok
    assert above.mistakes
    assert not above.doubt


@pytest.mark.parametrize("name", MEASURED)
def test_what_is_seen_from_outside_may_differ_by_the_noise_and_no_more(name: str) -> None:
    rise = MEASURED[name][3]["rise_bytes"]
    assert _finding(name, rise + NOISE_BYTES).ok
    more = _finding(name, rise + NOISE_BYTES + 1)
    assert more.doubt
    assert not more.ok


@pytest.mark.parametrize(
    ("name", "for_the_host"),
    [("adam", 2 * _STATE), ("stream", 0), ("saved", 24 * _ACTIVATION)],
)
def test_what_is_written_to_the_host_is_no_memory_and_more_is_doubted(
    name: str, for_the_host: int
) -> None:
    rise = MEASURED[name][3]["rise_bytes"]
    most = for_the_host + NOISE_BYTES
    assert _finding(name, rise + most, most).ok
    assert _finding(name, rise + most + 1, most + 1).doubt
    # What was not written has to be memory.
    assert _finding(name, rise + most + NOISE_BYTES, most).ok
    assert _finding(name, rise + most + NOISE_BYTES + 1, most).doubt


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("rise_bytes", [None, "0", 0.0, [1], True, np.float64(3)])
def test_garbled_figures_are_wrong_and_break_nothing(name: str, rise_bytes: object) -> None:
    finding = _finding(name, rise_bytes=rise_bytes)
    assert not finding.ok
    assert not finding.mistakes


def test_adam_counts_numpy_what_is_kept_and_what_zero_grad_leaves() -> None:
    assert _finding("adam", numpy_rise_bytes=2**20).mistakes == ("temporaries",)
    assert _finding("adam", numpy_rise_bytes=_STATE).mistakes == ("all_moments_at_once",)
    assert _finding("adam", kept_bytes=2**20).mistakes == ("keeps_on_the_device",)
    assert _finding("adam", cleared=False).mistakes == ("zero_grad_does_nothing",)
    still = _judged("adam", moved=False)
    assert {finding.mistakes for finding in still.values()} == {("not_in_place",)}


@pytest.mark.parametrize(
    ("live_bytes", "mistake"),
    [
        ([_STATE, _STATE, _STATE], "made_too_early"),
        ([0, _STATE, 2 * _STATE], "puts_again"),
        ([0, 0, 0], "nothing_on_the_host"),
        ([0, _STATE * 3 // 2, _STATE * 3 // 2], "gradients_too"),
    ],
)
def test_adam_bytes_on_the_host(live_bytes: list[int], mistake: str) -> None:
    finding = _judged("adam", live_bytes=live_bytes)["bytes on the host"]
    assert not finding.ok
    assert mistake in finding.mistakes


def test_streaming_needs_every_layer_in_a_run_of_few_bytes() -> None:
    assert _finding("stream", loads=[0]).mistakes == ("first_layer_only",)
    assert _finding("stream", loads=list(range(9))).mistakes == ("last_layer_left_out",)
    assert not _finding("stream", loads="0123456789").ok
    assert _finding("stream", rise_bytes=3 * _LAYER).mistakes == ("three_at_once",)
    assert _finding("stream", rise_bytes=10 * _LAYER).mistakes == ("all_layers_at_once",)


def test_a_low_peak_without_bytes_on_the_host_is_doubted() -> None:
    assert _finding("saved", bytes_out=3 * _ACTIVATION).doubt


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

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield


@pytest.mark.parametrize("program", PROGRAMS)
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


def test_a_low_peak_is_no_merit_where_what_went_out_does_not_come_back() -> None:
    part = MEASURED["saved"][1]
    case = next(c for c in swap_saved_tensors.cases(np.random.default_rng(0)) if "seed" in c.inputs)
    value = run_program(case.inputs["program"], case.inputs["seed"], lambda host: nullcontext())
    assert swap_saved_tensors.judge(case, Answer(value))[part].ok
    lost = Answer(value | {"gradients": [np.zeros((16, 8))]})
    assert not swap_saved_tensors.judge(case, lost)[part].ok


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


# Answers that hide. A name put together at run time is not seen by the ban, so these show what the
# look from outside is for.

_OFF = """
import torch.utils
off = getattr(getattr(torch.utils, "_python" + "_dispatch"), "_disable_current" + "_modes")
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


@pytest.mark.skipif(sys.platform != "linux" or missing_layers() != [], reason="no sandbox here")
@pytest.mark.parametrize("name", _HIDING)
def test_bytes_that_the_meter_does_not_see_are_seen_from_outside(
    name: str, sandbox: Sandbox
) -> None:
    task, part, inputs, _ = MEASURED[name.partition(",")[0]]
    parts = tuple(task.parts) if task is offloaded_adam else (part,)
    assert not banned_uses(task.ban, task.defines, [_HIDING[name]])
    with sandbox.open() as student:
        student.run_cell(_HIDING[name])
        answer = student.run(task.probe_path, inputs, measured=True)
    assert answer.raised is None
    findings = task.judge(Case(parts, inputs), answer)
    assert findings[part].doubt
    # And without the look from outside it would have passed.
    blind = task.judge(Case(parts, inputs), replace(answer, resident_bytes=None))
    assert blind[part].ok


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
    assert banned_uses(task.ban, task.defines, [f"def {name}(*args):\n    {line}\n"])
