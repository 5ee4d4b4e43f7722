"""run_in_segments: all segments but the last are checkpointed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from autograder.content.lab04.checkpoint import close, near
from autograder.content.lab04.forbidden import NO_TORCH_CHECKPOINT, UNSEEN
from autograder.model.compare import same
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.probes.lab04 import run_large_layers, run_layers

__all__ = ["run_in_segments"]

_SLACK_BYTES = 8 * 1024  # per segment: the RNG state, and smaller things
_SIDE = 128  # rows and columns
_ONE = 4 * _SIDE**2  # a float32 tensor
_MIB = 2**20
_LARGE_LAYERS, _LARGE_LENGTH, _LARGE_SIDE = 30, 5, 512
_LARGE_TENSOR = 4 * _LARGE_SIDE**2
# Live at once: the segments' inputs, what one segment saves, and four tensors of its backward.
_LARGE_TENSORS = _LARGE_LAYERS // _LARGE_LENGTH + _LARGE_LENGTH + 4


def _cases(rng: np.random.Generator) -> list[Case]:
    n, k = int(rng.integers(9, 14)), int(rng.integers(3, 5))
    sizes = [(8, 3, "list"), (n, k, "ModuleList"), (7, 2, "Sequential"), (6, 6, "list")]
    sizes += [(7, 5, "list"), (4, 9, "Sequential"), (5, 1, "ModuleList")]
    small = [
        Case(
            ("value",),
            {
                "container": container,
                "n_layers": n_layers,
                "segment_length": length,
                "seed": int(rng.integers(2**31)),
                "rows": _SIDE,
                "columns": _SIDE,
            },
        )
        for n_layers, length, container in sizes
    ]
    return [*small, _large(rng)]


def _large(rng: np.random.Generator) -> Case:
    """Enough layers that all outputs take twice the memory of segments."""
    large = {
        "n_layers": _LARGE_LAYERS,
        "segment_length": _LARGE_LENGTH,
        "seed": int(rng.integers(2**31)),
        "rows": _LARGE_SIDE,
        "columns": _LARGE_SIDE,
    }
    budget = Budget((1 + _LARGE_TENSORS) * _LARGE_TENSOR + _MIB)
    return Case(("value",), {"large": large}, budget=budget)


def _plain(layers: Any, x: Any, segment_length: int) -> Any:
    for layer in layers:
        x = layer(x)
    return x


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    if "large" in case.inputs:
        return dict.fromkeys(case.parts, _within(case.inputs["large"], answer))
    return dict.fromkeys(case.parts, _finding(case.inputs, answer.value))


def _within(inputs: Mapping[str, Any], answer: Answer) -> Finding:
    value = answer.value if isinstance(answer.value, dict) else {}
    if not _are_calls(value):
        return Finding(False, "The answers came back garbled.")
    n, k = _LARGE_LAYERS, _LARGE_LENGTH
    rise_bytes = answer.metered("rise_bytes")
    if answer.breaks_budget(rise_bytes, _LARGE_TENSORS * _LARGE_TENSOR):
        said = f"With {n} layers in segments of {k}: more outputs are live at once than segments "
        return Finding(False, f"{said}need.", (*_explain(n, k, value), _keeper(value)))
    if value["forward"] != list(range(n)) or sorted(value["backward"]) != list(
        range(_backward(n, k))
    ):
        said = f"With {n} layers in segments of {k}: other layers were called than expected."
        return Finding(False, said, _explain(n, k, value))
    if not near(value.get("sums"), _large_sums(inputs["seed"])):
        said = f"With {n} layers in segments of {k}: the result or its gradient is not the layers'."
        return Finding(False, said, _explain(n, k, value))
    return Finding(True)


def _are_calls(value: Mapping[str, Any]) -> bool:
    calls = [value.get("forward"), value.get("backward")]
    return all(isinstance(c, list) and all(type(n) is int for n in c) for c in calls)


@lru_cache(maxsize=64)
def _large_sums(seed: int) -> list[Any]:
    sizes = {"rows": _LARGE_SIDE, "columns": _LARGE_SIDE}
    found = run_large_layers(_plain, _LARGE_LAYERS, _LARGE_LENGTH, seed, **sizes, metered=False)
    sums: list[Any] = found["sums"]
    return sums


def _finding(inputs: Mapping[str, Any], value: Any) -> Finding:
    expected = run_layers(_plain, **inputs)
    if not isinstance(value, dict) or value.keys() != expected.keys() or not _are_calls(value):
        return Finding(False, "The answers came back garbled.")
    n, k = inputs["n_layers"], inputs["segment_length"]
    said = f"With {n} layers in segments of {k}: "
    if value["forward"] != list(range(n)):
        said += f"forward called the layers {value['forward']}, expected 0 to {n - 1}, once each."
        return Finding(False, said[:300], _explain(n, k, value))
    if not close(value["sums"], expected["sums"]):
        return Finding(
            False, f"{said}the result differs from running the layers one after another."
        )
    again = _backward(n, k)
    if sorted(value["backward"]) != list(range(again)):
        right = f"expected 0 to {again - 1}, once each" if again else "expected none"
        said += f"backward called the layers {value['backward']}, {right}."
        return Finding(False, said[:300], _explain(n, k, value))
    if not _close32(value["gradients"], expected["gradients"]):
        return Finding(False, f"{said}the gradients are not those without checkpoints.")
    segments = math.ceil(n / k)
    tensors = segments - 1 + n - again
    kept = value["kept_bytes"]
    if type(kept) is not int or kept > tensors * _ONE + segments * _SLACK_BYTES:
        said += f"after forward, more than {tensors} outputs are live."
        return Finding(False, said, _keeps(n, k, value) + _explain(n, k, value))
    if kept < tensors * _ONE or not same([n, again], value["operators"]):
        return Finding(False, doubt=UNSEEN)
    return Finding(True)


def _keeps(n: int, k: int, value: Mapping[str, Any]) -> tuple[str, ...]:
    """The mistake that keeps this much even though the right layers are called."""
    kept = value["kept_bytes"]
    if type(kept) is not int or k == 1:
        return ()
    return (_keeper(value),) if n * _ONE <= kept <= n * (_ONE + _SLACK_BYTES) else ()


def _keeper(value: Mapping[str, Any]) -> str:
    """What keeps every layer's output: checkpoints of single layers rerun them in falling order."""
    again = value["backward"]
    return "layer_by_layer" if again == sorted(again, reverse=True) else "keeps_outputs"


def _close32(got: Any, expected: list[Any]) -> bool:
    return (
        isinstance(got, list)
        and len(got) == len(expected)
        and all(
            isinstance(a, np.ndarray)
            and a.shape == b.shape
            and np.allclose(a, b, rtol=1e-4, atol=1e-4)
            for a, b in zip(got, expected, strict=True)
        )
    )


def _backward(n: int, k: int) -> int:
    """The number of layers called again: all except those of the last segment."""
    return (math.ceil(n / k) - 1) * k


def _explain(n: int, k: int, value: Mapping[str, Any]) -> tuple[str, ...]:
    got = [len(value["forward"]), sorted(value["backward"])]
    return tuple(name for name, calls in _CALLS.items() if [*calls(n, k)] == got)


# For each mistake, how many layers forward calls, and which ones backward calls.
_CALLS: dict[str, Callable[[int, int], tuple[int, list[int]]]] = {
    "last_segment_too": lambda n, k: (n, list(range(n))),
    "never_recomputed": lambda n, k: (n, []),
    "rest_left_out": lambda n, k: (n // k * k, list(range((n // k - 1) * k))),
    "cut_from_the_back": lambda n, k: (n, list(range(n - k))),
    "number_for_length": lambda n, k: (n, list(range(_backward(n, math.ceil(n / k))))),
    "first_segment_kept": lambda n, k: (n, list(range(k, n))),
    "one_layer_each": lambda n, k: (n, list(range(n - 1))),
    "about_equal": lambda n, k: (n, list(range(_backward(n, math.ceil(n / math.ceil(n / k)))))),
    "late_closure": lambda n, k: (
        n,
        sorted([*range(_backward(n, k), n)] * (math.ceil(n / k) - 1)),
    ),
}

run_in_segments = Task(
    id="lab04-run_in_segments",
    parts={"value": 2},
    defines=("run_in_segments",),
    probe="run_in_segments",
    cases=_cases,
    judge=_judge,
    mistakes={
        "last_segment_too": "You checkpoint the last segment too. Its backward comes right after "
        "its forward, so recomputing it gains nothing.",
        "never_recomputed": "Nothing is recomputed in backward. Run every segment but the last "
        "through checkpoint.",
        "rest_left_out": "Your segments skip the layers after the last whole segment.",
        "cut_from_the_back": "Your first segment is the short one, or your last is always whole. "
        "Cut from the front: the remainder is the last segment.",
        "number_for_length": "You treat segment_length as the number of segments. It is the number "
        "of layers in one.",
        "first_segment_kept": "You recompute the last segment and keep the first. Leave the last "
        "segment without a checkpoint instead.",
        "layer_by_layer": "You checkpoint each layer separately, so each layer's input is kept. "
        "Run a whole segment as one function through checkpoint, which keeps only the segment's "
        "input.",
        "keeps_outputs": "Your function keeps the output of each layer. Drop it once the next "
        "layer has run: look for lists and closures that hold it.",
        "one_layer_each": "You recompute all layers but one, whatever the length of a segment.",
        "about_equal": "Your segments are about equally long. Cut segments of segment_length from "
        "the front; the last one gets the remaining layers, even if it's short.",
        "late_closure": "Backward runs the last segment's layers for every segment. Your function "
        "reads the loop variable, which has changed by the time backward calls it: pass the "
        "layers to checkpoint as an argument.",
    },
    ban=NO_TORCH_CHECKPOINT,
    trust="measured",
)
