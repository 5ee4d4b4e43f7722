"""Exercise: a forward pass whose weights come to the device one layer at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from autograder.content.meter_tampering import NO_METER_TAMPERING
from autograder.model.compare import show
from autograder.model.task import Answer, Budget, Case, Finding, Task

__all__ = ["stream_forward"]

_SAME, _TWO = "same output", "two layers at most"
_COUNT = 10  # layers of the large chain
_SLACK_BYTES = 256 * 1024  # for activations of about 24 KiB each, and the grader
_MIB = 2**20  # of a budget, for the short run before it and for the answer

Array = np.ndarray[Any, Any]
Weights = Sequence[Array]


def _cases(rng: np.random.Generator) -> list[Case]:
    def small(count: int) -> Case:
        width = int(rng.integers(3, 9))
        weights = [rng.standard_normal((width, width)) / 2 for _ in range(count)]
        return Case((_SAME,), {"weights": weights, "x": rng.uniform(0.5, 1.0, (3, width))})

    again = small(2)
    again.inputs["weights"].append(again.inputs["weights"][0])
    # Its second layer is two matrices side by side, so its output's shape differs from that of x.
    wider = small(3)
    wider.inputs["weights"][1] = np.stack(wider.inputs["weights"][1:])
    return [
        *(small(count) for count in (1, 3, 4)),
        again,
        wider,
        _large(rng),
        Case(
            (_SAME,),
            {"weights": [], "x": np.ones((2, 3))},
            fixed=True,
            about="there are no layers.",
        ),
    ]


def _large(rng: np.random.Generator) -> Case:
    """Layers of over 8 MiB, more than a notebook may hold without being noticed."""
    width = int(rng.integers(1490, 1530))
    fillings = [float(filling) for filling in rng.uniform(0.6, 1.6, _COUNT)]
    layer_bytes = 4 * width**2
    return Case(
        (_TWO,),
        {"width": width, "fillings": fillings, "rows": 4},
        budget=Budget(
            2 * layer_bytes + _SLACK_BYTES + 2 * _MIB, window_bytes=layer_bytes, files=True
        ),
    )


def _forward(weights: Weights, x: Array) -> Array:
    for weight in weights:
        x = np.tanh(x @ weight)
    return x


def _sum(weights: Weights, x: Array) -> Array:
    return sum((np.tanh(x @ weight) for weight in weights), np.zeros(()))


_MUTANTS: dict[str, Callable[[Weights, Array], Array]] = {
    "returns_the_input": lambda weights, x: x,
    "last_layer_left_out": lambda weights, x: _forward(weights[:-1], x),
    "first_layer_left_out": lambda weights, x: _forward(weights[1:], x),
    "first_layer_only": lambda weights, x: _forward(weights[:1], x),
    "backwards": lambda weights, x: _forward(weights[::-1], x),
    "not_chained": lambda weights, x: _forward(weights[-1:], x),
    "summed": _sum,
}


def _close(a: Array, b: Any) -> bool:
    return isinstance(b, np.ndarray) and a.shape == b.shape and np.allclose(a, b, 1e-9, 1e-12)


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    value = answer.value if isinstance(answer.value, dict) else {}
    if "width" in case.inputs:
        return {_TWO: _within(case.inputs, value, answer)}
    return {_SAME: _same(case.inputs["weights"], case.inputs["x"], value)}


def _same(weights: Weights, x: Array, value: Mapping[str, Any]) -> Finding:
    if value.get("x_changed") is not False:
        return Finding(False, "", ("input_changed",))
    if value.get("gradients_on") is not True:
        return Finding(False, "", ("gradients_left_off",))
    expected, got = _forward(weights, x), value.get("output")
    if not _close(expected, got):
        said = f"For {len(weights)} layers: expected {show(expected)}, but got {show(got)}."
        return Finding(False, said, tuple(_explanations(weights, x, got)))
    return Finding(True)


def _explanations(weights: Weights, x: Array, got: Any) -> list[str]:
    return [name for name, mutant in _MUTANTS.items() if _close(mutant(weights, x), got)]


def _are_loads(loads: Any) -> TypeGuard[list[int]]:
    return isinstance(loads, list) and all(type(layer) is int for layer in loads)


def _within(inputs: Mapping[str, Any], value: Mapping[str, Any], answer: Answer) -> Finding:
    corners, loads = value.get("corners"), value.get("loads")
    if not _are_loads(loads) or not isinstance(corners, list) or len(corners) != 2:
        return Finding(False, "The answers came back garbled.")
    if set(loads) != set(range(_COUNT)):
        return Finding(False, "Not every layer was loaded.", tuple(_missing(loads)))
    # A layer filled with f / width maps x to tanh(f x), so one number stands for all.
    weights, one = [np.array([[filling]]) for filling in inputs["fillings"]], np.ones((1, 1))
    if not any(_ends_with(m(weights, one), corners) for m in (_forward, *_MUTANTS.values())):
        return Finding(False, "Your function treats large layers differently from small ones.")
    layer_bytes, rise_bytes = 4 * inputs["width"] ** 2, answer.metered("rise_bytes")
    if answer.breaks_budget(rise_bytes, 2 * layer_bytes + _SLACK_BYTES):
        every = (rise_bytes or 0) >= _COUNT * layer_bytes
        return Finding(False, _RISE, ("all_layers_at_once",) if every else ("three_at_once",))
    if value.get("requires_grad") is not False:
        return Finding(False, "", ("graph_recorded",))
    return Finding(True)


def _ends_with(output: Array, corners: list[Any]) -> bool:
    numbers = all(type(corner) is float for corner in corners)
    return numbers and np.allclose(corners, output.item(), rtol=1e-4, atol=1e-6)


def _missing(loads: Sequence[Any]) -> list[str]:
    by_loads = {
        "first_layer_only": [0],
        "last_layer_left_out": list(range(_COUNT - 1)),
        "first_layer_left_out": list(range(1, _COUNT)),
    }
    return [name for name, those in by_loads.items() if loads == those]


_RISE = "The weights of more than two layers were on the device at once."

stream_forward = Task(
    id="lab06-stream_forward",
    parts={_SAME: 1, _TWO: 2},
    defines=("stream_forward",),
    probe="stream_forward",
    cases=_cases,
    judge=_judge,
    trust="measured",
    ban=NO_METER_TAMPERING,
    mistakes={
        "all_layers_at_once": "All layers end up on the device at once. Either you keep the "
        "layers that load() returned, for example in a list, or autograd keeps the weights for a "
        "backward that never runs: compute under torch.no_grad().",
        "three_at_once": "You load a third layer while two are still alive. Free each layer "
        "before you load the one after the next: a variable holds its layer until you reassign it.",
        "graph_recorded": "Your output requires a gradient: autograd recorded a graph, which "
        "keeps weights on the device. Compute every layer under torch.no_grad(), including the "
        "last.",
        "gradients_left_off": "After your function runs, torch no longer records gradients. Use "
        "`with torch.no_grad():`, which lasts for its block only.",
        "returns_the_input": "Your function returns its input. Keep each layer's output: "
        "x = layer(x).",
        "last_layer_left_out": "Your function leaves out the last layer.",
        "first_layer_left_out": "Your function leaves out the first layer.",
        "first_layer_only": "Your function returns after the first layer: look at where `return` "
        "is indented.",
        "backwards": "Your function runs the layers from the last to the first.",
        "not_chained": "Your function gives every layer the first input. The output of one layer "
        "is the input of the next.",
        "summed": "Your function adds up the layers' outputs for the same input. The output of "
        "one layer is the input of the next.",
        "input_changed": "Your function changed x or the list of layers. Others may need them.",
    },
)
