"""Exercise: a forward pass whose weights come to the device one layer at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.compare import show
from autograder.task import Answer, Case, Finding, Task
from autograder.tasks.lab03.lean_adam_step import NOISE_BYTES

__all__ = ["stream_forward"]

_SAME, _TWO = "same output", "two layers at most"
_ROWS = 4
_SLACK_BYTES = 64 * 1024  # activations, and the grader's own

Array = np.ndarray[Any, Any]
Weights = Sequence[Array]


def _cases(rng: np.random.Generator) -> list[Case]:
    def small(count: int) -> Case:
        widths = [int(width) for width in rng.integers(3, 9, count + 1)]
        weights = [rng.standard_normal(shape) / 2 for shape in itertools.pairwise(widths)]
        x = rng.uniform(0.5, 1.0, (3, widths[0]))
        return Case((_SAME,), {"weights": weights, "x": x})

    square = [rng.standard_normal((5, 5)) / 2 for _ in range(4)]
    # Eight layers of 1.8 to 2.4 MiB; their order in size is not that in the network.
    widths = [int(width) for width in rng.integers(680, 790, 9)]
    return [
        small(1),
        small(3),
        Case((_SAME,), {"weights": square, "x": rng.uniform(0.5, 1.0, (2, 5))}),
        Case((_TWO,), {"widths": widths, "rows": _ROWS}),
        Case((_SAME,), {"weights": [], "x": np.ones((2, 3))}, fixed=True),
    ]


def _forward(weights: Weights, x: Array) -> Array:
    for weight in weights:
        x = np.tanh(x @ weight)
    return x


def _sum(weights: Weights, x: Array) -> Array:
    outputs: Array = np.sum([np.tanh(x @ weight) for weight in weights], axis=0)
    return outputs


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
    if "widths" in case.inputs:
        return {_TWO: _within(case.inputs["widths"], value, answer.resident_bytes)}
    return {_SAME: _same(case.inputs["weights"], case.inputs["x"], value)}


def _same(weights: Weights, x: Array, value: Mapping[str, Any]) -> Finding:
    if value.get("x_changed"):
        return Finding(False, "", ("input_changed",))
    expected, got = _forward(weights, x), value.get("output")
    if not _close(expected, got):
        said = f"For {len(weights)} layers: expected {show(expected)}, but got {show(got)}."
        return Finding(False, said, tuple(_explanations(weights, x, got)))
    return Finding(True)


def _explanations(weights: Weights, x: Array, got: Any) -> list[str]:
    found = []
    for name, mutant in _MUTANTS.items():
        try:
            same = _close(mutant(weights, x), got)
        except ValueError:  # these shapes do not fit together
            continue
        if same:
            found.append(name)
    return found


def _within(widths: Sequence[int], value: Mapping[str, Any], resident_bytes: int | None) -> Finding:
    rise_bytes, loads = value.get("rise_bytes"), value.get("loads")
    if type(rise_bytes) is not int or not isinstance(loads, list):
        return Finding(False, "The answers came back garbled.")
    sizes = [4 * a * b for a, b in itertools.pairwise(widths)]
    if set(loads) != set(range(len(sizes))):
        return Finding(False, "Not every layer was loaded.", ("first_layer_only",))
    if rise_bytes > 2 * max(sizes) + _SLACK_BYTES:
        every = rise_bytes >= sum(sizes)
        mistakes = ("all_layers_at_once",) if every else ("three_at_once",)
        return Finding(False, _RISE, mistakes)
    if resident_bytes is not None and resident_bytes > rise_bytes + NOISE_BYTES:
        return Finding(False, doubt=_OUTSIDE)
    return Finding(True)


_RISE = "More weights were on the device at once than those of two layers."
_OUTSIDE = (
    "Seen from outside, your process took clearly more memory than the meter counted within it. "
    "A person has to look at where it went."
)

stream_forward = Task(
    id="lab06-stream_forward",
    parts={_SAME: 1, _TWO: 2},
    defines=("stream_forward",),
    probe="stream_forward",
    cases=_cases,
    judge=_judge,
    trust="measured",
    mistakes={
        "all_layers_at_once": "All layers end up on the device at once. Either you keep what "
        "load() returned, in a list for example, or autograd keeps the weights for a backward "
        "that will not come: compute under torch.no_grad().",
        "three_at_once": "A third layer is loaded while two are still there. Let go of a layer "
        "before you load the one after the next: a variable holds it until it is set anew.",
        "returns_the_input": "Your function returns its input. Keep each layer's output: "
        "x = layer(x).",
        "last_layer_left_out": "Your function leaves out the last layer.",
        "first_layer_left_out": "Your function leaves out the first layer.",
        "first_layer_only": "Your function returns after the first layer: look at where `return` "
        "is indented.",
        "backwards": "Your function runs the layers from the last to the first.",
        "not_chained": "Your function gives every layer the first input. The output of one layer "
        "is the input of the next.",
        "summed": "Your function adds up what the layers make of the same input. The output of "
        "one layer is the input of the next.",
        "input_changed": "Your function wrote into x. Others may still need it.",
    },
)
